"""Rules for choosing a connection, on the same stalls: one connection is frozen for 1 s, every 3 s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import plots, rules
from benchmarks.connections.case import COLUMNS, SETTINGS_TEXT, Case, Load, measure
from benchmarks.disturbances import Freeze, repeated
from benchmarks.report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from benchmarks.connections.case import Measured, Options

_OURS = "this library"
_CASES = (
    Case("no hedging", None, connections=1),
    Case("hedges on the same connection", connections=1),
    Case("two connections: random", rule=rules.any_one),
    Case("two connections: round robin", rule=rules.round_robin),
    Case("two connections: power of two choices", rule=rules.two_choices),
    Case("two connections: least loaded", rule=rules.least_loaded),
    Case("trusted ones, round robin", rule=rules.trusted_in_turn),
    Case("trusted ones, least loaded", rule=rules.trusted_least_loaded),
    Case(_OURS),
)
_PLACES = {
    "first": "the connection that was opened first",
    "alternate": "one connection after the other",
    "random": "a connection that is drawn each time",
}


def compare_rules(options: Options) -> None:
    """Measures each rule, and writes a report."""
    load = Load(rate=200, seconds=4 if options.quick else 22)
    programme = repeated(Freeze(), load.seconds, seconds=1, every=3, which=options.which, seed=options.seed)
    measured = {case.name: measure(case, load, programme, options.seed) for case in _CASES}
    what = (
        f"{load.rate:g} messages/s for {load.seconds:g} s; {_PLACES[options.which]} freezes for 1 s every 3 s."
    )
    text = (
        f"{what} {SETTINGS_TEXT}\n\n"
        "All rules send a hedge on another connection than its original's. A trusted connection has no "
        "overdue attempt that it has been silent since. The last row is the library as it is."
    )
    rows = [each.row(name) for name, each in measured.items()]
    report = Report("connection_stall", "One of two connections stalls", text, COLUMNS, rows)
    report.write(_draw(measured, what), options.out)


def _draw(measured: dict[str, Measured], what: str) -> Figure:
    p99 = [measured[name].run.percentile_ms(99) for name in (_OURS, "no hedging")]
    figure = plots.new_figure(
        f"A connection stalls, and 99 % of requests take at most {p99[0]:.1f} ms instead of {p99[1]:.0f} ms",
        f"{what}\nAll axes of latency and share are logarithmic; further left is better.",
        width=13,
        height=6.5,
    )
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    colors = {"no hedging": plots.BAD, _OURS: plots.OURS}
    others = iter((plots.GREY, *plots.OTHERS))
    colors = {name: colors.get(name) or next(others) for name in measured}
    for name, each in measured.items():
        plots.draw_slower(left, each.run.latencies_ms, name, colors[name], strong=name in (_OURS, "no hedging"))
    plots.latency_axis(left, "x")
    plots.slower_axis(left, len(measured[_OURS].run.sent))
    plots.clean(left, "both")
    _draw_extra(right, measured, colors)
    return figure


def _draw_extra(axes: Axes, measured: dict[str, Measured], colors: dict[str, str]) -> None:
    names = list(reversed(measured))
    extra = [measured[name].run.extra_percent for name in names]
    axes.barh(names, extra, color=[colors[name] for name in names], height=0.6)
    for position, percent in enumerate(extra):
        axes.text(percent, position, f"  {percent:.1f} %", va="center", fontsize=11, color=plots.GREY)
    axes.set_xlim(0, 1.25 * max(*extra, 1))
    axes.set_xlabel("extra requests, %", color=plots.GREY, fontsize=11)
    plots.clean(axes, "x")
    for label, name in zip(axes.get_yticklabels(), names, strict=True):
        label.set_color(colors[name])
        label.set_fontsize(12)
        label.set_fontweight("bold" if name == _OURS else "normal")
