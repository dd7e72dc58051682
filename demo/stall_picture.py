"""The second picture: what a connection that freezes does to each message, with one connection and with two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from demo.result import percentile
from demo.stall import FREEZE_S
from demo.style import BETTER, GREY, WORSE, tidy
from demo.table import shown

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from demo.stall import StallRun

_TICKS = {1: "1 ms", 10: "10 ms", 100: "100 ms", 1e3: "1 s", 1e4: "10 s"}


def save_stall_picture(one: StallRun, two: StallRun, path: Path) -> None:
    """Draws each message's latency over the time at which it was due, and saves a PNG.

    Args:
        one: The run on one connection.
        two: The run on two connections.
        path: The file.
    """
    figure = Figure(figsize=(10, 6), dpi=120, layout="constrained")
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    worst, better = (percentile(run.latencies_ms, 99) for run in (one, two))
    figure.suptitle(
        f"A connection freezes: 99 % of messages within {shown(better)} instead of {shown(worst)}",
        x=0.01,
        ha="left",
        fontsize=14,
        fontweight="bold",
    )
    _draw(panels[0], one, WORSE, "hedges share the only connection")
    _draw(panels[1], two, BETTER, "hedges, and then all that follows, take the other connection")
    panels[1].set_xlabel("seconds; the connection is frozen where the ground is grey", color=GREY, fontsize=11)
    figure.supylabel("publish latency of each message", color=GREY, fontsize=11)
    figure.savefig(path)


def _draw(axes: Axes, run: StallRun, color: str, name: str) -> None:
    for start in run.freezes:
        axes.axvspan(start, start + FREEZE_S, color="#e6e9eb", linewidth=0, zorder=0)
    due, latency = zip(*run.points, strict=True)
    axes.plot(due, latency, ".", markersize=4, color=color)
    extra = 100 * (run.requests - len(run.points)) / len(run.points)
    axes.set_title(
        f"{name}: {extra:.1f} % more requests", loc="left", fontsize=12, fontweight="bold", color=color
    )
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_yticks(list(_TICKS), list(_TICKS.values()))
    low, high = run.latencies_ms[0], run.latencies_ms[-1]
    axes.set_ylim(min(low / 2, 1), max(2 * high, 2e3))
    axes.set_xlim(0, due[-1])
    tidy(axes)
