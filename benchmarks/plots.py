"""How the benchmarks' pictures look: readable without the page that they stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

OURS, BAD, GREY, GRID = "#1c6f94", "#c8402f", "#56626a", "#dfe3e6"
# For what is neither ours nor the worst.
OTHERS = ("#d98a29", "#7a5195", "#3f8f5b", "#b0548a", "#8c6d46", "#2f4b7c")
_SECOND = 1000


def new_figure(title: str, subtitle: str, width: float = 10, height: float = 6) -> Figure:
    """Returns a figure under a headline that says what it shows.

    Args:
        title: What there is to see, in one line.
        subtitle: What was measured; may have several lines.
        width: In inches.
        height: In inches.
    """
    # Not pyplot: it would look for a screen.
    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    lines = subtitle.count("\n") + 1
    band = (0.40 + 0.23 * lines) / height
    figure.get_layout_engine().set(rect=(0.01, 0.01, 0.98, 0.98 - band))  # type: ignore[union-attr, call-arg]
    figure.text(0.02, 1 - 0.12 / height, title, fontsize=14, fontweight="bold", va="top")
    figure.text(0.02, 1 - 0.45 / height, subtitle, fontsize=11, color=GREY, va="top", linespacing=1.3)
    return figure


def shown_ms(milliseconds: float) -> str:
    """Returns a latency as text, in ms below a second."""
    return f"{milliseconds / _SECOND:g} s" if milliseconds >= _SECOND else f"{milliseconds:g} ms"


def clean(axes: Axes, grid: str = "y") -> None:
    """Takes away what does not speak.

    Args:
        axes: Where.
        grid: The axis whose ticks have lines: "x", "y" or "both".
    """
    axes.tick_params(colors=GREY, labelsize=10, length=0, which="both")
    axes.grid(axis=grid, color=GRID, linewidth=0.8)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    axes.title.set_fontsize(12)


def latency_axis(axes: Axes, which: str, label: str = "publish latency") -> None:
    """Makes one axis a logarithmic one of latencies in ms.

    Args:
        axes: Where.
        which: "x" or "y".
        label: What it is called.
    """
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(LogLocator(10, subs=(1.0, 3.0), numticks=20))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _position: shown_ms(float(f"{value:.3g}"))))
    getattr(axes, f"set_{which}label")(label, color=GREY, fontsize=11)


def slower_axis(axes: Axes, count: int) -> None:
    """Makes the y axis the share of requests that were slower: logarithmic, from all to one of `count`."""
    axes.set_yscale("log")
    axes.set_ylim(100 * 0.7 / count, 100)
    axes.yaxis.set_major_locator(LogLocator(10, numticks=10))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:g} %"))
    axes.set_ylabel("share of requests that took longer", color=GREY, fontsize=11)


def draw_slower(axes: Axes, latencies_ms: Sequence[float], name: str, color: str, *, strong: bool) -> None:
    """Draws the complementary distribution of latencies.

    Args:
        axes: Where.
        latencies_ms: In order.
        name: What the line is called in a legend.
        color: Of the line.
        strong: Whether it is one of those that matter most.
    """
    count = len(latencies_ms)
    shares = [100 * (count - rank) / count for rank in range(count)]
    axes.plot(
        latencies_ms,
        shares,
        drawstyle="steps-pre",
        label=name,
        color=color,
        linewidth=3 if strong else 1.6,
        zorder=3 if strong else 2,
    )
