"""The templates' README: its commands name what exists, in an order in which they can be run."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from templates.metadata import HERE, TEMPLATES
from tests.test_docs import sections

README = HERE / "README.md"
TEXT = README.read_text(encoding="utf-8")
COMMANDS = "\n".join(re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)).replace("\\\n", " ")


def test_links_lead_somewhere() -> None:
    """Nobody who follows a link ends at a missing file or section."""
    for path, section in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", TEXT):
        target = (README.parent / path).resolve() if path else README
        assert target.exists(), path
        assert not section or section in sections(target), section


def test_variables_are_set_before_they_are_used() -> None:
    """The commands can be copied from the first to the last."""
    known: set[str] = set()
    for line in COMMANDS.splitlines():
        assert set(re.findall(r"\$(\w+)", line)) <= known | set(re.findall(r"^for (\w+) in", line)), line
        known |= set(re.findall(r"^(?:export|for) (\w+)", line))


def test_files_that_commands_name_are_there() -> None:
    """No command stops for want of a file of this repository."""
    named = re.findall(r"=(templates/[\w./]+)", COMMANDS)
    assert len(named) >= 4
    assert [path for path in named if not (HERE.parent / path).exists()] == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.pipeline)
def test_a_launch_has_parameters_that_exist(template: Any) -> None:
    """A launch that is copied is accepted, and nothing that is required is missing."""
    launches = [line for line in COMMANDS.splitlines() if f"/{template.pipeline}.json" in line]
    assert launches
    for line in launches:
        values = ",".join(re.findall(r"--parameters=([^\s\"]+)", line))
        given = {each.split("=", 1)[0] for each in values.split(",")}
        assert set(template.required) <= given <= {each["name"] for each in template.metadata()["parameters"]}


def test_a_build_has_the_substitutions_that_its_file_knows() -> None:
    """What is built goes to the reader's own places, and not to the defaults'."""
    known = yaml.safe_load((HERE / "cloudbuild.yaml").read_text(encoding="utf-8"))["substitutions"]
    [given] = re.findall(r"--substitutions=(\S+)", COMMANDS)
    assert {each.split("=")[0] for each in given.split(",")} == set(known) - {"_IMAGES"}


def test_roles_of_the_table_are_those_of_the_commands() -> None:
    """The roles that are explained are the roles that are given, to the same account."""
    rows = re.findall(r"^\| (worker|builder) \| `(roles/[\w.]+)` ", TEXT, re.MULTILINE)
    given = re.findall(
        r"add-iam-policy-binding.*serviceAccount:\$(WORKER|BUILDER)\b.*--role=(roles/[\w.]+)", COMMANDS
    )
    assert set(rows) == {(account.lower(), role) for account, role in given}


def test_what_is_made_is_removed() -> None:
    """Who follows the page to its end pays for nothing afterwards."""
    clean_up = COMMANDS[COMMANDS.index("for JOB in") :]
    for kind, names in re.findall(
        r"gcloud (pubsub \w+|iam service-accounts) create ([\w -]+?)(?: --|\n)", COMMANDS
    ):
        for name in names.split():
            variable = next(iter(re.findall(rf"export (\w+)={name}@", COMMANDS)), None)
            wanted = f"${variable}" if variable else name
            assert re.search(rf"gcloud {kind} delete [^\n]*{re.escape(wanted)}(?:\s|$)", clean_up), name
    assert "gs://$BUCKET --recursive" in clean_up
    assert "repositories delete $REPOSITORY" in clean_up
