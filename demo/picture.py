"""The picture: how long batches took to publish, without and with hedging."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from demo.result import percentile
from demo.style import BETTER, GREY, WORSE, tidy
from demo.table import shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from demo.result import Result

_PERCENTS = {0: "0 %", 50: "50 %", 90: "90 %", 99: "99 %", 99.9: "99.9 %"}
_TICKS = {
    1: "1 ms",
    3: "3 ms",
    10: "10 ms",
    30: "30 ms",
    100: "100 ms",
    300: "300 ms",
    1e3: "1 s",
    3e3: "3 s",
    1e4: "10 s",
}
_MARKED = 99


def save_picture(plain: Result, hedged: Result, path: Path) -> None:
    """Draws both runs' latencies by percentile and saves a PNG.

    Args:
        plain: The run without hedging.
        hedged: The run with hedging.
        path: The file.
    """
    slow, quick = plain.latencies_ms, hedged.latencies_ms
    # Not pyplot: it would look for a screen.
    figure = Figure(figsize=(10, 6), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    extra = 100 * (hedged.requests - len(quick)) / len(quick)
    axes.set_title(
        f"With hedging, 99 % of batches are published within {shown(percentile(quick, _MARKED))} "
        f"instead of {shown(percentile(slow, _MARKED))}\n",
        loc="left",
        fontsize=14,
        fontweight="bold",
    )
    axes.text(
        0,
        1.025,
        f"{len(slow):,} batches. Both axes are logarithmic. Requests that hedging adds: {extra:.1f} %.",
        transform=axes.transAxes,
        fontsize=11,
        color=GREY,
    )
    if len(slow) == len(quick):
        top = [max(pair) for pair in zip(slow, quick, strict=True)]
        axes.fill_between(_positions(len(slow)), quick, top, step="mid", color=WORSE, alpha=0.10, linewidth=0)
    _draw_run(axes, slow, WORSE, "without hedging", above=True)
    _draw_run(axes, quick, BETTER, "with hedging", above=False)
    _draw_axes(axes, len(slow))
    figure.savefig(path)


def _position(percent: float) -> float:
    """Returns where a percentile stands: on a log axis, each further nine takes the same room."""
    return 100 / (100 - percent)


def _positions(count: int) -> list[float]:
    return [_position(100 * (rank + 0.5) / count) for rank in range(count)]


def _draw_run(axes: Axes, latencies: Sequence[float], color: str, name: str, *, above: bool) -> None:
    positions = _positions(len(latencies))
    axes.plot(positions, latencies, color=color, linewidth=2.5, drawstyle="steps-mid")
    marked = percentile(latencies, _MARKED)
    for position, latency, text, align in (
        (_position(_MARKED), marked, f"{name}\np99 {shown(marked)}", "right"),
        (positions[-1], latencies[-1], f"slowest\n{shown(latencies[-1])}", "left"),
    ):
        axes.plot(
            position,
            latency,
            marker="o",
            markersize=12,
            color=color,
            markeredgecolor="white",
            markeredgewidth=2,
        )
        axes.annotate(
            text,
            (position, latency),
            xytext=(-10 if align == "right" else 10, 10 if above else -10),
            textcoords="offset points",
            ha=align,
            va="bottom" if above else "top",
            color=color,
            fontsize=13,
            fontweight="bold",
        )


def _draw_axes(axes: Axes, count: int) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, 6 * count)
    low, high = axes.get_ylim()
    axes.set_ylim(low, 2 * high)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks([_position(percent) for percent in _PERCENTS], list(_PERCENTS.values()))
    ticks = {tick: text for tick, text in _TICKS.items() if low <= tick <= high}
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.axvline(_position(_MARKED), color=GREY, linewidth=1, linestyle=(0, (4, 4)), zorder=1)
    axes.set_xlabel("percentile: this share of batches was at least as fast", color=GREY, fontsize=11)
    axes.set_ylabel("publish latency", color=GREY, fontsize=11)
    tidy(axes)
