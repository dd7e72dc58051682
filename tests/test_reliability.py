"""The page on reliability tells of all tests of faults, and of none that are not there."""

from __future__ import annotations

import ast
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tools import reliability

if TYPE_CHECKING:
    from collections.abc import Sequence

QUICK, SLOW = "tests/faults/test_it.py::test_quick", "tests/faults/test_it.py::test_slow"


def _rows() -> list[dict[str, str]]:
    """Returns the page's rows, by the names of their columns."""
    lines = [
        line for line in reliability.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")
    ]
    header, *_ = table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(header, row, strict=True)) for row in table if row != header]


def _functions() -> set[str]:
    """Returns the test functions that make rows, as `file::function`."""
    found: set[str] = set()
    for path in (reliability.ROOT / reliability.FOLDER).glob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and "matrix" in {each.arg for each in node.args.args}:
                found.add(f"{path.name}::{node.name}")
    return found


def _collected() -> set[str]:
    """Returns the names of all tests of faults, as they stand in the page."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*command, reliability.FOLDER], cwd=reliability.ROOT, capture_output=True, text=True, check=True
    )
    return {line.removeprefix(f"{reliability.FOLDER}/") for line in ended.stdout.splitlines() if "::" in line}


def test_every_test_of_a_fault_is_in_the_page_and_every_row_is_a_test() -> None:
    """Whoever reads the page reads all of it, and can run what it names."""
    functions = _functions()
    named = {row["test"].strip("`") for row in _rows()}
    assert named == {test for test in _collected() if test.partition("[")[0] in functions}


def test_nothing_is_lost() -> None:
    """The page says so of each row."""
    assert {row["lost"] for row in _rows()} == {"0"}


def _line(test: str, **values: Any) -> dict[str, Any]:
    counts = {"acknowledged": 3, "failed": 0, "dead_lettered": 0, "lost": 0, "duplicated": 0}
    row = {
        "section": "Calls",
        "fault": "a | b",
        "test": test,
        "messages": 3,
        **counts,
        "hedges": 0,
        "recovery": None,
    }
    return {**row, "seconds": 0.1, **values}


def test_the_page_tells_the_worst_of_all_runs() -> None:
    """One bad run out of many cannot hide behind the others."""
    rows = reliability.worst(
        [
            _line(QUICK, duplicated=2, recovery=0.5),
            _line(SLOW),
            _line(QUICK, acknowledged=1, failed=1, dead_lettered=1, hedges=4, recovery=1.25),
        ]
    )
    assert reliability.page(rows).splitlines()[-2:] == [
        "| A &#124; b | 3 | 1 | 1, and 1 dead-lettered | 0 | 2 | 4 | 1.25 s | `test_it.py::test_quick` |",
        "| A &#124; b | 3 | 3 | 0 | 0 | 0 | 0 | | `test_it.py::test_slow` |",
    ]
    assert "1 row 2 times and 1 row once" in reliability.page(rows)


@pytest.mark.parametrize(("times", "quick", "slow"), [(1, 1, 1), (2, 2, 2), (20, 20, 3)])
def test_quick_tests_are_run_more_often(
    times: int, quick: int, slow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's figures are of as many runs as it says, and are still made in minutes."""

    def run(tests: Sequence[str]) -> list[dict[str, Any]]:
        every = {QUICK: _line(QUICK), SLOW: _line(SLOW, seconds=2.5)}
        return [line for test, line in every.items() if test in tests or tests == [reliability.FOLDER]]

    monkeypatch.setattr(reliability, "run", run)
    assert [row["runs"] for row in reliability.worst(reliability.repeat(times))] == [quick, slow]
