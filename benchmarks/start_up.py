"""What the library costs to start: its import, and the way to the first acknowledged message."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import plots
from benchmarks.report import Column, Report
from benchmarks.server import TOPIC, serving
from benchmarks.spread import columns, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STEPS = {
    "beam": "import apache_beam",
    "hedge": "then import beam_hedge",
    "setup": "the DoFn's setup",
    "first": "from there to the first message's acknowledgement",
}
_GOALS_MS = {"hedge": 50, "first": 150}
_COLUMNS = (Column("name", "step"), *columns("ms", "ms", ",.1f"), Column("goal", "at most"))
_ROOT = Path(__file__).resolve().parent.parent


def start_up() -> dict[str, float]:
    """Returns the milliseconds of each step in a fresh process, against the server that is on."""
    command = [sys.executable, "-m", "benchmarks.start_probe", TOPIC]
    # Without bytecode it would be the compiler that is measured.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    answer = subprocess.run(command, cwd=_ROOT, env=environment, check=True, capture_output=True, text=True)
    steps: dict[str, float] = json.loads(answer.stdout)
    return steps


def report_start_up(runs: int, out: Path) -> None:
    """Starts fresh processes, and writes a report."""
    with serving():
        # The first one may find modules whose bytecode is still to be written.
        start_up()
        found = [start_up() for _ in range(runs)]
    rows = [
        {
            "name": name,
            **spread("ms", [each[step] for each in found]),
            "goal": f"{_GOALS_MS[step]} ms" if step in _GOALS_MS else "",
        }
        for step, name in _STEPS.items()
    ]
    text = (
        f"Medians of {runs} fresh processes, one step after the other, with bytecode. The server is on this "
        "machine."
    )
    Report("start_up", "Import and first message", text, _COLUMNS, rows).write(_draw(rows), out)


def _draw(rows: list[dict[str, Any]]) -> Figure:
    took = dict(zip(_STEPS, (row["ms"] for row in rows), strict=True))
    figure = plots.new_figure(
        f"import beam_hedge takes {took['hedge']:.0f} ms; the first message is there {took['first']:.0f} ms "
        "after setup",
        "Steps one after the other, in a fresh process.",
        height=3.4,
    )
    axes = figure.add_subplot()
    for number, row in enumerate(rows):
        ours = row["goal"] or row["name"].startswith("the DoFn")
        axes.barh(number, row["ms"], color=plots.OURS if ours else plots.GREY)
        goal = f", goal: at most {row['goal']}" if row["goal"] else ""
        axes.text(row["ms"], number, f"  {row['ms']:,.0f} ms{goal}", va="center", fontsize=11, color=plots.GREY)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.set_xlim(0, 1.35 * max(row["ms"] for row in rows))
    axes.invert_yaxis()
    plots.clean(axes, "x")
    return figure
