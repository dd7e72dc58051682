"""The same stalls with more requests in flight, as with a server that takes its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import plots
from benchmarks.connections.case import COLUMNS, SETTINGS_TEXT, Case, Load, measure
from benchmarks.disturbances import Freeze, repeated
from benchmarks.report import Column, Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.connections.case import Measured, Options

_NO_HEDGING, _SAME, _OURS = "no hedging", "hedges on the same connection", "two connections, hedged"
_CASES = (Case(_NO_HEDGING, None, connections=1), Case(_SAME, connections=1), Case(_OURS))
_COLORS = {_NO_HEDGING: plots.BAD, _SAME: plots.OTHERS[0], _OURS: plots.OURS}
# Requests a second, and the server's latency in ms.
_LOADS = ((200, 20), (533, 30), (1200, 30))


def compare_loads(options: Options) -> None:
    """Measures each load with and without hedging, and writes a report."""
    seconds = 4.0 if options.quick else 22.0
    programme = repeated(Freeze(), seconds, seconds=1, every=3, which=options.which, seed=options.seed)
    measured: dict[tuple[int, int], dict[str, Measured]] = {}
    for rate, latency_ms in _LOADS:
        load = Load(rate, seconds, f"1:{latency_ms / 1000}")
        print(f"  {_in_flight(rate, latency_ms)} in flight", flush=True)
        measured[rate, latency_ms] = {
            case.name: measure(case, load, programme, options.seed) for case in _CASES
        }
    rows = [
        {"in_flight": _in_flight(*load), "rate": load[0], "latency_ms": load[1], **each.row(name)}
        for load, cases in measured.items()
        for name, each in cases.items()
    ]
    text = (
        f"One connection freezes for 1 s every 3 s, {seconds:g} s in all. {SETTINGS_TEXT}\n\n"
        "In flight: requests that are out when nothing stalls, which is rate x latency of the server."
    )
    columns = (
        Column("in_flight", "in flight", "d"),
        Column("rate", "requests/s", ",d"),
        Column("latency_ms", "server ms", "d"),
        *COLUMNS,
    )
    report = Report("connection_in_flight", "Stalls with more requests in flight", text, columns, rows)
    report.write(_draw(measured), options.out)


def _in_flight(rate: int, latency_ms: int) -> int:
    return round(rate * latency_ms / 1000)


def _draw(measured: dict[tuple[int, int], dict[str, Measured]]) -> Figure:
    figure = plots.new_figure(
        "With 4 to 36 requests in flight, a frozen connection holds up few of them",
        "One connection freezes for 1 s every 3 s. All axes are logarithmic; further left is better.\n"
        "Dashed: the server's latency, alone and with the hedge delay.",
        width=14,
    )
    panels = figure.subplots(1, len(measured), sharex=True, sharey=True)
    for axes, ((rate, latency_ms), cases) in zip(panels, measured.items(), strict=True):
        for name, each in cases.items():
            plots.draw_slower(axes, each.run.latencies_ms, name, _COLORS[name], strong=name == _OURS)
        for line in (latency_ms, latency_ms + 100):
            axes.axvline(line, color=plots.GREY, linewidth=1, linestyle=(0, (4, 4)), zorder=1)
        extra = cases[_OURS].run.extra_percent
        axes.set_title(
            f"{_in_flight(rate, latency_ms)} in flight: {rate:,}/s, {latency_ms} ms\n"
            f"{extra:.1f} % extra requests",
            loc="left",
        )
        plots.latency_axis(axes, "x")
        plots.slower_axis(axes, max(len(each.run.sent) for each in cases.values()))
        plots.clean(axes, "both")
    for axes in panels[1:]:
        axes.set_ylabel("")
    panels[0].legend(edgecolor="none", framealpha=1, fontsize=11, labelcolor="linecolor", loc="lower left")
    return figure
