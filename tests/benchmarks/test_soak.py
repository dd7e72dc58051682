"""A short soak."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.soaking.faults import FAULTS, programme

SECONDS = float(os.environ.get("BEAM_HEDGE_SOAK_SECONDS", "20"))
# Its first faults are final statuses, an outage and retryable statuses.
SEED = 1
ROOT = Path(__file__).resolve().parents[2]
# What is out at the end has as long as a soak gives it, twice.
PATIENCE = 2 * 60.0


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the program to its end."""
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.soak", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS + PATIENCE,
        check=False,
    )


@pytest.mark.timeout(SECONDS + PATIENCE + 10)
def test_no_promise_is_broken_while_things_go_wrong(tmp_path: Path) -> None:
    """Messages, hedges, permits, memory, threads and descriptors are accounted for, whatever happens."""
    done = run("--seconds", f"{SECONDS:g}", "--seed", str(SEED), "--out", str(tmp_path))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.endswith("no promise was broken\n")
    # It was a soak, and no fair weather.
    wrong = {phase.fault.name for phase in programme(FAULTS["local"], SECONDS, SEED)}
    assert all(f" s  {name}: " in done.stdout for name in wrong)
    with (tmp_path / "soak_seconds.csv").open(encoding="utf-8", newline="") as file:
        seconds = list(csv.DictReader(file))
    assert sum(int(each["messages"]) for each in seconds) > 100
    assert sum(int(each["hedges"]) for each in seconds) > 0
    page = (tmp_path / "soak.md").read_text(encoding="utf-8")
    assert "No promise was broken." in page
    assert (tmp_path / "soak.png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_service_is_refused() -> None:
    """A mistyped name does not soak something else for ten minutes."""
    assert run("--service", "other").returncode == 2
