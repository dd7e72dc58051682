"""How the demonstration's pictures look."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORSE, BETTER, GREY = "#c8402f", "#1c6f94", "#56626a"


def tidy(axes: Axes) -> None:
    """Takes away what does not speak: frames and ticks. Horizontal lines help to read latencies."""
    axes.tick_params(colors=GREY, labelsize=11, length=0)
    axes.grid(axis="y", color="#dfe3e6", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
