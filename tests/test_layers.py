"""The order of the modules: each imports only what stands above it, so a reader can start at the top."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "beam_hedge"
PIPELINES = ROOT / "pipelines"

# From the ground up. `beam_hedge/__init__.py` stands on top of all: it imports what is public.
LAYERS = [
    "_version",
    "errors",
    "last_resort",
    "settings",
    "topics",
    "token_bucket",
    "retry",
    "telemetry",
    "message",
    "labels",
    "batch",
    "flow_control",
    "outcome",
    "interfaces",
    "policy",
    "attempts",
    "channel_factory",
    "connection",
    "connection_counts",
    "channels",
    "engine",
    "publish_futures",
    "outcome_log",
    "tracing",
    "shared_request",
    "callers",
    "request",
    "dispatcher",
    "publisher_config",
    "publisher",
    "lease",
    "isolate",
    "metrics",
    "bundle",
    "display",
    "write_fn",
    "dead_letters",
    "tracking_write_fn",
    "write_result",
    "add_ids",
    "transform",
    "yaml_io",
]
# The rest works without Beam, and can be tested without it.
IMPORT_BEAM = {
    "metrics",
    "write_fn",
    "dead_letters",
    "tracking_write_fn",
    "write_result",
    "display",
    "add_ids",
    "transform",
    "yaml_io",
}
MOST_LINES = 250


def imported(source: str, package: str) -> set[str]:
    """List what a file imports: at the top, inside functions, and for type checkers only.

    Args:
        source: The file's text.
        package: The package that the file is in, which relative imports start from.

    Returns:
        Full names: `import a.b` gives `a.b`, and so does `from a import b`.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return names


def imports_of(path: Path) -> set[str]:
    """List what a file of this project imports."""
    package = ".".join(path.relative_to(ROOT).parent.parts)
    return imported(path.read_text(encoding="utf-8"), package)


def imports_any(path: Path, *modules: str) -> bool:
    """Say whether a file imports one of these modules, or anything in them."""
    found = imports_of(path)
    return any(f"{name}.".startswith(f"{module}.") for name in found for module in modules)


def names(paths: Iterable[Path]) -> list[str]:
    """Name files as a person would, for a failing test to show."""
    return sorted(str(path.relative_to(ROOT)) for path in paths)


def test_all_kinds_of_imports_are_seen() -> None:
    """The checks below cannot be passed by importing in a function, relatively, or for type checkers."""
    source = """
import os.path
from . import lease
from .engine import Engine as E
from ..other import thing
if TYPE_CHECKING:
    from beam_hedge.transform import WriteResult
def late():
    import apache_beam as beam
"""
    assert imported(source, "beam_hedge.testing") == {
        "os.path",
        "beam_hedge.testing.lease",
        "beam_hedge.testing.engine.Engine",
        "beam_hedge.other.thing",
        "beam_hedge.transform.WriteResult",
        "apache_beam",
    }


def test_the_list_is_complete() -> None:
    """A new module gets its place in the order before anything can be built on it."""
    assert sorted(LAYERS) == sorted(path.stem for path in LIBRARY.glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("module", LAYERS)
def test_a_module_imports_only_what_stands_above_it(module: str) -> None:
    """Who reads a module has to know only the ones before it."""
    own = {name for name in imports_of(LIBRARY / f"{module}.py") if name.split(".")[0] == "beam_hedge"}
    # A name that is taken from the package itself comes from its __init__, which stands above none.
    above = LAYERS[: LAYERS.index(module)]
    assert {name for name in own if [*name.split("."), ""][1] not in above} == set()


def test_beam_is_imported_by_few() -> None:
    """The publisher can be used, and understood, without Beam."""
    files = set(LIBRARY.rglob("*.py")) - {LIBRARY / f"{module}.py" for module in IMPORT_BEAM}
    assert names(path for path in files if imports_any(path, "apache_beam")) == []


def test_the_library_never_loads_test_tools() -> None:
    """What runs in production holds nothing that was made for tests."""
    above = ("beam_hedge.testing", "pipelines", "demo", "benchmarks", "tests", "tools")
    assert names(path for path in LIBRARY.glob("*.py") if imports_any(path, *above)) == []


def test_pipelines_use_only_what_users_can_use() -> None:
    """A pipeline of ours can be copied by users as the start of their own."""
    private = [f"beam_hedge.{module}" for module in [*LAYERS, "testing"]]
    files = PIPELINES.rglob("*.py")
    assert names(path for path in files if imports_any(path, *private, "tests", "tools")) == []


def test_a_file_holds_one_concept() -> None:
    """A file can be read in one sitting."""
    files = [*LIBRARY.rglob("*.py"), *PIPELINES.rglob("*.py")]
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {path: number for path, number in lines.items() if number > MOST_LINES} == {}
