"""The demonstration as a whole, with less data and a quicker server."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from demo.show import main

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[2]


def cells(output: str, label: str) -> list[str]:
    """Returns the two cells of a row of the table."""
    (row,) = re.findall(rf"^{label} {{3,}}(\S+) {{3,}}(\S+)$", output, re.MULTILINE)
    return list(row)


def test_the_demonstration_shows_both_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A newcomer's first look ends well: nothing is lost, late batches are hedged, pictures are there."""
    assert main(["--lines=500", "--profile=0.92:0.002,0.08:0.4", f"--out={tmp_path}"]) == 0
    said, stalled = capsys.readouterr().out.split("3. A connection that freezes")
    assert cells(said, "lost messages") == ["0", "0"]
    assert cells(said, "batches") == ["100", "100"]
    hedges = [int(cell) for cell in cells(said, "hedges sent")]
    # Eight batches in a hundred are slow, and ten that are published pay for one hedge.
    assert hedges[0] == 0
    assert hedges[1] > 0
    plain, hedged = (int(cell) for cell in cells(said, "requests"))
    assert plain == 100
    # A hedge can be cancelled before it arrives.
    assert 100 <= hedged <= 100 + hedges[1]
    assert said.count("DONE: 500 messages published in 100 batches") == 2
    assert cells(stalled, "lost messages") == ["0", "0"]
    assert cells(stalled, "messages") == ["500", "500"]
    pictures = [tmp_path / name for name in ("hedging.png", "connections.png")]
    assert f"Pictures: {pictures[0]}, {pictures[1]}\n" in stalled
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)


def test_a_pipeline_that_fails_fails_the_demonstration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A demonstration that could not show anything does not look like a success."""
    assert main(["--lines=5", "--hedge-delay=99", f"--out={tmp_path}"]) == 1
    assert "argument --hedge_delay: must be seconds from 0.1 to 10, got '99.0'" in capsys.readouterr().err


def test_the_demonstration_can_be_stopped(tmp_path: Path) -> None:
    """Who has seen enough of `python -m demo` presses Ctrl-C, and gets the prompt back in good order."""
    with subprocess.Popen(
        [sys.executable, "-m", "demo", "--lines=50", "--profile=1:10", f"--out={tmp_path}"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as demo:
        try:
            assert demo.stdout is not None
            for line in demo.stdout:
                # Printed while the first pipeline runs.
                if "the pipeline is starting" in line:
                    break
            demo.send_signal(signal.SIGINT)
            said, _ = demo.communicate(timeout=60)
        finally:
            demo.kill()
    assert said.endswith("Stopped. Nothing is left running.\n")
    assert demo.returncode == 130
