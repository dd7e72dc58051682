"""The pictures of throughput: a dot for each way to publish, with the runs' least and most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks import plots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Line = dict[str, Any]

_COLORS = (plots.BAD, plots.OURS, plots.OTHERS[0], plots.GREY)
# Of the space between two groups, what lies between two dots.
_THIN = 0.21
_MEASURES = {"rate": "messages/s, more is better", "cpu_us": "CPU us a message, less is better"}


def draw_pipelines(lines: Sequence[Line], names: Sequence[str]) -> Figure:
    """Draws messages a second and CPU of sinks.

    Args:
        lines: Rows of the table.
        names: The ways to show: the peer, ours, and the two floors.
    """
    shapes = list(dict.fromkeys(line["shape"] for line in lines))
    figure = plots.new_figure(
        _headline(lines, names),
        "Left: the whole pipeline. Right: the write stage alone. Axes are logarithmic; lines show all runs.",
        width=13,
        height=8,
    )
    for axes, (key, title) in zip(figure.subplots(1, 2), _MEASURES.items(), strict=True):
        groups = {shape: {line["name"]: line for line in lines if line["shape"] == shape} for shape in shapes}
        _dots(axes, groups, names, key, title)
    figure.axes[1].set_yticklabels([])
    _legend(figure)
    return figure


def draw_clients(lines: Sequence[Line], names: Sequence[str]) -> Figure:
    """Draws messages a second and CPU of publishers, by the number of threads.

    Args:
        lines: Rows of the table.
        names: The ways to show: the peer, ours, and the two floors.
    """
    figure = plots.new_figure(
        _headline(lines, names),
        "By message and number of threads; floors have one thread. Axes are logarithmic; lines show all runs.",
        width=13,
        height=12,
    )
    threaded = [line for line in lines if line["threads"]]
    groups = {
        f"{line['shape']}\n{line['threads']} thread{'s' * (line['threads'] > 1)}": {
            other["name"]: other
            for other in lines
            if other["shape"] == line["shape"] and other["threads"] in (line["threads"], "")
        }
        for line in threaded
    }
    for axes, (key, title) in zip(figure.subplots(1, 2), _MEASURES.items(), strict=True):
        _dots(axes, groups, names, key, title)
    figure.axes[1].set_yticklabels([])
    _legend(figure)
    return figure


def _headline(lines: Sequence[Line], names: Sequence[str]) -> str:
    peer, ours, *_ = names
    times = [line["times"] for line in lines if line["name"] == ours]
    return f"{ours}: {min(times):.1f} to {max(times):.0f} times the messages/s of {peer}"


def _dots(axes: Axes, groups: dict[str, dict[str, Line]], names: Sequence[str], key: str, title: str) -> None:
    for place, (name, color) in enumerate(zip(names, _COLORS, strict=True)):
        there = [(number, group[name]) for number, group in enumerate(groups.values()) if name in group]
        at = [number + _THIN * (place - (len(names) - 1) / 2) for number, _ in there]
        values = [line[key] for _, line in there]
        axes.plot(values, at, "o", color=color, label=name, markersize=6)
        for y, (_, line) in zip(at, there, strict=True):
            axes.plot([line[f"{key}_least"], line[f"{key}_most"]], [y, y], color=color, linewidth=2)
            form = ",.0f" if key == "rate" else ".1f"
            axes.text(
                line[f"{key}_most"] * 1.12,
                y,
                format(line[key], form),
                va="center",
                fontsize=8,
                color=plots.GREY,
            )
    axes.set_xscale("log")
    least, most = axes.get_xlim()
    axes.set_xlim(least, most * 2)
    for number in range(0, len(groups), 2):
        axes.axhspan(number - 0.5, number + 0.5, color=plots.GRID, alpha=0.35, linewidth=0)
    axes.set_ylim(-0.5, len(groups) - 0.5)
    axes.set_yticks(range(len(groups)), list(groups))
    axes.invert_yaxis()
    axes.set_title(title, loc="left")
    plots.clean(axes, "x")


def _legend(figure: Figure) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=11)
