"""The image and how it is built: that it fits the package, and that nothing in it is misspelt."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import setuptools
import yaml
from google.cloud.devtools.cloudbuild_v1 import Build
from google.protobuf import json_format
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from templates import launch
from templates.metadata import HERE, TEMPLATES

ROOT = HERE.parent
DOCKERFILE = HERE / "Dockerfile"
CLOUD_BUILD = HERE / "cloudbuild.yaml"


def instructions() -> list[tuple[str, str]]:
    """Returns the Dockerfile's instructions, each with what follows it."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE).replace(
        "\\\n", " "
    )
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]  # type: ignore[misc]


def arguments() -> dict[str, str]:
    """Returns the Dockerfile's build arguments that have defaults."""
    return dict(value.split("=", 1) for kind, value in instructions() if kind == "ARG" and "=" in value)


def build() -> dict[str, Any]:
    """Returns what Cloud Build is told."""
    found: dict[str, Any] = yaml.safe_load(CLOUD_BUILD.read_text(encoding="utf-8"))
    return found


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what setup.py says about the package."""
    said: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", lambda **arguments: said.update(arguments))
    runpy.run_path(str(ROOT / "setup.py"))
    return said


def test_a_linter_finds_nothing() -> None:
    """The image can be built: every instruction is one that Docker knows, and none is known to be harmful."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    hadolint = shutil.which("hadolint", path=path)
    assert hadolint is not None, "hadolint comes with the extra 'test'"
    ran = subprocess.run(
        [hadolint, "--failure-threshold=style", str(DOCKERFILE)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_beam_is_the_one_that_setup_names(package: dict[str, Any]) -> None:
    """Launcher and workers run the Beam that the package was tested with, and no upgrade happens unseen."""
    [beam] = [Requirement(each) for each in package["extras_require"]["templates"]]
    assert (beam.name, beam.extras) == ("apache-beam", {"gcp"})
    version = arguments()["BEAM_VERSION"]
    assert str(beam.specifier) == f"=={version}"
    [lowest] = [Requirement(each) for each in package["install_requires"] if each.startswith("apache-beam")]
    assert version in lowest.specifier


def test_python_is_one_that_the_package_is_for(package: dict[str, Any]) -> None:
    """The image's Python is supported, and the launcher is made for the same one."""
    version = arguments()["PYTHON_VERSION"]
    assert version in SpecifierSet(package["python_requires"])
    assert f"Programming Language :: Python :: {version}" in package["classifiers"]
    launcher, sdk = (value for kind, value in instructions() if kind == "FROM")
    assert f"/python{version.replace('.', '')}-template-launcher-base:" in launcher
    assert launcher.endswith(" AS launcher")
    assert sdk == "apache/beam_python${PYTHON_VERSION}_sdk:${BEAM_VERSION}"


def test_what_is_copied_is_there(package: dict[str, Any]) -> None:
    """The build does not stop for want of a file, and the whole package is in the image."""
    copied = [part for kind, value in instructions() if kind == "COPY" for part in value.split()[:-1]]
    ours = {part for part in copied if not part.startswith(("--from", "/opt/"))}
    assert [part for part in ours if not (ROOT / part).exists()] == []
    assert {name.partition(".")[0] for name in package["packages"]} <= ours
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    assert set(re.findall(r"[\w.]+\.(?:md|py|toml)|LICENSE", manifest)) <= ours


def test_the_launcher_finds_its_program() -> None:
    """A launch starts the pipeline, and downloads no packages before it does."""
    values = " ".join(value for kind, value in instructions() if kind == "ENV")
    variables = dict(each.split("=", 1) for each in values.split())
    workdir = next(value for kind, value in instructions() if kind == "WORKDIR")
    assert variables["FLEX_TEMPLATE_PYTHON_PY_FILE"] == f"{workdir}/{Path(launch.__file__).name}"
    assert variables[launch.PIPELINE] == "${PIPELINE}"
    assert variables[launch.IMAGE] == "${IMAGE}"
    assert not {"FLEX_TEMPLATE_PYTHON_REQUIREMENTS_FILE", "FLEX_TEMPLATE_PYTHON_SETUP_FILE"} & set(variables)
    assert instructions()[-1] == ("ENTRYPOINT", '["/opt/apache/beam/boot"]')


def test_cloud_build_can_read_its_file() -> None:
    """A build starts: no field is misspelt, and every substitution has a value."""
    json_format.ParseDict(build(), Build.pb(Build()))
    used = set(
        re.findall(r"\$\{?(\w+)", str({**build(), "substitutions": None}) + str(build()["substitutions"]))
    )
    assert used - set(build()["substitutions"]) == {"BUILD_ID", "PROJECT_ID"}
    # Otherwise substitutions within substitutions stay as they are.
    assert build()["options"]["dynamicSubstitutions"] is True


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.pipeline)
def test_cloud_build_makes_each_template(template: Any) -> None:
    """Both templates come from one build, each with its own pipeline, image and parameters."""
    image = f"${{_IMAGES}}/{template.pipeline}:${{BUILD_ID}}"
    commands = [" ".join([step.get("entrypoint", "docker"), *step["args"]]) for step in build()["steps"]]
    metadata = f"--metadata-file={template.path.relative_to(ROOT).as_posix()}"
    build_args = f"--build-arg=PIPELINE={template.pipeline} --build-arg=IMAGE={image}"
    file = f"gs://${{_BUCKET}}/templates/{template.pipeline}.json"
    assert [command for command in commands if template.pipeline in command] == [
        f"docker build --file=templates/Dockerfile {build_args} --tag={image} .",
        f"docker push {image}",
        f"gcloud dataflow flex-template build {file} --image={image} --sdk-language=PYTHON {metadata}",
    ]
