"""What the documents say can be followed: links, code, commands, and tests that are named as proof."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from apache_beam.options.pipeline_options import StandardOptions

import beam_hedge
import beam_hedge.testing
from beam_hedge.testing import LocalPubSub
from tests.beam.pipelines import close_publishers

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
API = ROOT / "docs" / "api"
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TOPIC = re.compile(r"projects/[\w-]+/topics/[\w-]+")
_YES = re.compile(r"yes\b")


def name(path: Path) -> str:
    """Names a file as a person would."""
    return str(path.relative_to(ROOT))


def code(document: Path) -> str:
    """Returns what stands in a document as code: in blocks, and in backticks."""
    text = document.read_text(encoding="utf-8")
    blocks = re.findall(r"^```.*?^```$", text, re.MULTILINE | re.DOTALL)
    return "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", text)])


def blocks(document: Path) -> list[Any]:
    """Returns a document's blocks of Python, each with the number of its first line."""
    text = document.read_text(encoding="utf-8")
    found = [(text.count("\n", 0, match.start()) + 2, match[1]) for match in _BLOCK.finditer(text)]
    return [pytest.param(line, source, id=f"{document.name}:{line}") for line, source in found]


@pytest.fixture
def local_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalPubSub]:
    """Lead publishers and pipelines that name no target or runner to this machine and to Beam's own runner."""
    # The default tries to download another one first.
    monkeypatch.setattr(StandardOptions, "DEFAULT_RUNNER", "FnApiRunner")
    with LocalPubSub() as server, server.environment():
        yield server
    close_publishers()


def test_all_documents_are_looked_at() -> None:
    """The checks below do not pass because they found nothing to check."""
    assert {"README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/features.md"} <= set(
        map(name, DOCUMENTS)
    )
    assert len(blocks(README)) >= 3


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_link_leads_somewhere(document: Path) -> None:
    """Nobody who follows a link in the documents ends at a missing file or section."""
    text = document.read_text(encoding="utf-8")
    dead = []
    for path, section in _LINK.findall(text):
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (section and section[1:] not in sections(target)):
            dead.append(path + section)
    assert dead == []


def sections(document: Path) -> set[str]:
    """Returns the names by which a document's headings can be linked."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(("line", "source"), blocks(README))
def test_the_readmes_code_runs(line: int, source: str, local_service: LocalPubSub) -> None:
    """What a reader copies from the README works as it stands, and publishes."""
    topics = set(_TOPIC.findall(source))
    for topic in topics:
        local_service.create_topic(topic)
    # A traceback then has the README's own line numbers.
    program = compile("\n" * (line - 1) + source, str(README), "exec")
    exec(program, {"__name__": "readme"})  # noqa: S102 - the project's own document
    own_server = "LocalPubSub(" in source
    assert local_service.ledger().messages > 0 or own_server


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_make_target_exists(document: Path) -> None:
    """Every command of the documents is one that make knows."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z][\w-]*)", code(document)))
    assert named - targets == set()
    assert named or document != README


def modules() -> list[str]:
    """Returns the names of the library's modules that have examples."""
    found = pkgutil.walk_packages(beam_hedge.__path__, "beam_hedge.")
    paths = {module.name: ROOT.joinpath(*module.name.split(".")) for module in found if not module.ispkg}
    return [
        module
        for module, path in paths.items()
        if ">>> " in path.with_suffix(".py").read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("module", modules())
@pytest.mark.usefixtures("local_service")
def test_examples_in_docstrings_are_true(module: str) -> None:
    """What an example shows is what happens."""
    result = doctest.testmod(importlib.import_module(module))
    assert result.failed == 0
    assert result.attempted > 0


def directives() -> set[str]:
    """Returns the names that the API reference describes."""
    found = set()
    for page in API.glob("*.rst"):
        module = ""
        for kind, argument in re.findall(
            r"^\.\. (currentmodule|auto\w+):: (\S+)$", page.read_text(), re.MULTILINE
        ):
            if kind == "currentmodule":
                module = argument
            else:
                found.add(f"{module}.{argument}")
    return found


def test_the_reference_describes_all_that_is_public() -> None:
    """What can be imported can be looked up, and nothing else is promised."""
    public = {f"beam_hedge.{each}" for each in beam_hedge.__all__ if each != "__version__"}
    public |= {f"beam_hedge.testing.{each}" for each in beam_hedge.testing.__all__}
    assert directives() == {*public, "beam_hedge.yaml_io.WriteRowsToPubSubHedged"}


def rows() -> list[Any]:
    """Returns the features' name, our column, and the tests that show it."""
    lines = (ROOT / "docs" / "features.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")]
    return [
        pytest.param(row[-2], row[-1], id=row[0].strip("| "))
        for row in cells
        if row[-1].strip("| ") != "shown by"
    ]


@pytest.mark.parametrize(("ours", "tests"), rows())
def test_every_feature_is_shown_by_a_test(ours: str, tests: str) -> None:
    """No feature is claimed that nothing checks."""
    named = re.findall(r"`(\S+\.py)::(test_\w+)`", tests)
    assert named or not _YES.match(ours)
    for path, function in named:
        tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, path
