"""The pictures of growth: points, the line that fits them, and how well it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.ticker import StrMethodFormatter

from benchmarks import plots
from benchmarks.fits import fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Line = dict[str, Any]

_US = 1e6
_KIB = 1024
# The unit that a slope is told in, by what grows.
_SLOPES = {"cpu": (_US, "us of CPU each", "s"), "memory": (_KIB, "KiB each", "MiB")}
_TITLES = {"cpu": "CPU, s", "memory": "peak memory above that after setup, MiB"}


def draw_growth(lines: Sequence[Line], what: str, *, memory_grows: bool) -> Figure:
    """Draws CPU and memory by size.

    Args:
        lines: Rows of the table; with two sizes at least there is a fit.
        what: What the sizes count.
        memory_grows: Whether memory has a line, or is bounded.
    """
    figure = plots.new_figure(
        f"CPU and memory from {lines[0]['size']:,} to {lines[-1]['size']:,} {what}",
        "Dots are medians, with all runs as lines; the line is a least-squares fit. Axes are linear.",
        width=12,
        height=5.5,
    )
    for axes, key in zip(figure.subplots(1, 2), _TITLES, strict=True):
        _points(axes, lines, key)
        if key == "memory" and not memory_grows:
            axes.text(
                0.04,
                0.95,
                "no line to fit: flow control bounds what is out",
                transform=axes.transAxes,
                va="top",
                fontsize=11,
            )
        elif len(lines) > 1:
            _fit(axes, lines, key)
        # Growth that is hardly there must not fill the picture.
        axes.set_ylim(0, 1.35 * max(1.0, *(each[f"{key}_most"] for each in lines)))
        axes.set_title(_TITLES[key], loc="left")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        plots.clean(axes, "both")
        axes.set_xlabel(what, color=plots.GREY)
    return figure


def _fit(axes: Axes, lines: Sequence[Line], key: str) -> None:
    last = lines[-1]["size"]
    line = fit([each["size"] for each in lines], [each[key] for each in lines])
    factor, each, once = _SLOPES[key]
    axes.plot([0, last], [line.at(0), line.at(last)], color=plots.GREY, linewidth=1.5, zorder=1)
    text = f"{line.slope * factor:.3g} {each}, and {line.intercept:.2g} {once} once\nR² = {line.r_squared:.4f}"
    axes.text(0.04, 0.95, text, transform=axes.transAxes, va="top", fontsize=11)


def draw_stall(lines: Sequence[Line]) -> Figure:
    """Draws memory by size, below what is allowed."""
    most, allowed, limit = max(line["memory_most"] for line in lines), lines[0]["allowed"], lines[0]["limit"]
    figure = plots.new_figure(
        f"While the server stalls, memory grows by at most {most:.0f} MiB, with {lines[-1]['size']:,} messages",
        "Peak memory above that after setup, MiB, by the number of 1 KiB messages in the input.",
        height=5,
    )
    axes = figure.add_subplot()
    _points(axes, lines, "memory")
    for line in lines:
        axes.annotate(
            f"{line['memory']:.0f} MiB",
            (line["size"], line["memory"]),
            (0, 10),
            textcoords="offset points",
            ha="center",
        )
    for value, name, color in (
        (allowed, "allowed: flow control's limit and 120 MB", plots.BAD),
        (limit, "flow control's limit", plots.GREY),
    ):
        axes.axhline(value, color=color, linestyle="--", linewidth=1)
        axes.text(lines[0]["size"], value, f"{name}, {value:.0f} MiB", color=color, va="bottom", fontsize=11)
    axes.set_ylim(0, 1.2 * max(most, allowed))
    axes.set_xscale("log")
    axes.set_xticks([line["size"] for line in lines], [f"{line['size']:,}" for line in lines])
    axes.set_xticks([], minor=True)
    axes.margins(x=0.12)
    axes.set_xlabel("messages", color=plots.GREY)
    plots.clean(axes)
    return figure


def _points(axes: Axes, lines: Sequence[Line], key: str) -> None:
    for line in lines:
        least, most = line[f"{key}_least"], line[f"{key}_most"]
        axes.plot([line["size"]] * 2, [least, most], color=plots.OURS, linewidth=2, alpha=0.6)
    axes.plot(
        [line["size"] for line in lines], [line[key] for line in lines], "o", color=plots.OURS, markersize=8
    )
