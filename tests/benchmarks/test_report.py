"""What a benchmark leaves behind."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from benchmarks.report import Column, Report

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

REPORT = Report(
    "example",
    "An example",
    "What was done.",
    (Column("name", ""), Column("p50_ms", "p50 ms", ".1f")),
    [{"name": "hedged", "p50_ms": 1.234567, "unused": 0}],
)


def test_a_report_is_three_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who doubts a figure finds it in full, sees it, and can run the same command again."""
    monkeypatch.setattr(sys, "orig_argv", ["/usr/bin/python3", "-m", "benchmarks.example", "--seed", "1"])
    REPORT.write(Figure(), tmp_path / "results")
    with (tmp_path / "results/example.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == [{"name": "hedged", "p50_ms": "1.234567"}]
    assert (tmp_path / "results/example.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "results/example.md").read_text(encoding="utf-8")
    assert page.startswith("# An example\n\nWhat was done.\n\n![An example](example.png)\n")
    assert "| hedged | 1.2 |" in page
    assert "| command | `python -m benchmarks.example --seed 1` |" in page
    for line in ("machine", "Python", "beam-hedge", "grpcio", "date"):
        assert f"| {line} | " in page
    assert "| hedged | 1.2 |" in capsys.readouterr().out
