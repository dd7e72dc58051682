"""The service is gone for a while, for all connections and new ones, and comes back."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

from beam_hedge.settings import seconds
from benchmarks import plots
from benchmarks.connections.case import COLUMNS, HEDGED, SETTINGS_TEXT, Case, Load, measure
from benchmarks.disturbances import BlackHole, Disturbance, Freeze
from benchmarks.report import Column, Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.connections.case import Measured, Options
    from benchmarks.load import Run

_RATE = 200
_BEFORE = 3.0
_STEP = 0.1
_HELD, _PLAIN, _LOST = "hedged", "no hedging", "hedged, and TCP has to send again"
_COLORS = {_PLAIN: plots.BAD, _HELD: plots.OURS, _LOST: plots.OTHERS[2]}


def show_outage(options: Options) -> None:
    """Measures an outage with and without hedging, and writes a report."""
    outage, after = (4.0, 3.0) if options.quick else (30.0, 25.0)
    load = Load(_RATE, _BEFORE + outage + after, "fast")
    held = (Disturbance(Freeze(), _BEFORE, outage, connection=None),)
    lost = (Disturbance(BlackHole(), _BEFORE, outage, connection=None),)
    measured = {
        _PLAIN: measure(Case(_PLAIN, None), load, held, options.seed),
        _HELD: measure(Case(_HELD), load, held, options.seed),
        _LOST: measure(Case(_LOST), load, lost, options.seed),
    }
    rows = [_row(name, each, outage) for name, each in measured.items()]
    text = (
        f"{_RATE} messages/s, answered in 5 ms, but for {outage:g} s nothing passes on any connection, "
        f"new ones included. {SETTINGS_TEXT}\n\n"
        "Hedges in the outage are those that were due before its end. Normal again: seconds from its end until "
        f"the median of each {_STEP:g} s is at most twice that before it. In the last row, what was held up "
        "arrives only when TCP sends it again, at intervals that have doubled all the while."
    )
    columns = (
        COLUMNS[0],
        Column("requests", "requests", ",d"),
        Column("failed", "failed", "d"),
        Column("duplicates", "duplicates", "d"),
        Column("hedges_within", "hedges in the outage", "d"),
        Column("hedges", "hedges in all", "d"),
        Column("normal_p50_ms", "p50 before, ms", ".1f"),
        Column("normal_after", "normal again after s", ".1f"),
        *COLUMNS[-3:],
    )
    report = Report("connection_outage", "A whole outage, and the recovery", text, columns, rows)
    report.write(_draw(measured, outage), options.out)


def _row(name: str, measured: Measured, outage: float) -> dict[str, Any]:
    run, end = measured.run, _BEFORE + outage
    normal = _median(run, 0, _BEFORE)
    return {
        **measured.row(name),
        "duplicates": measured.arrived - len(run.sent) + run.failed,
        "hedges_within": _hedges_until(run, end),
        "hedges": run.hedges,
        "normal_p50_ms": 1000 * normal,
        "normal_after": recovery(run, end, 2 * normal),
    }


def _hedges_until(run: Run, end: float) -> int:
    """Returns how many hedges were due by `end`: each is sent a hedge delay after the one before it."""
    delay = seconds(HEDGED.hedge_delay)
    due = [(each.outcome, int((end - each.at - each.late) / delay)) for each in run.sent]
    return sum(min(outcome.hedges, max(0, most)) for outcome, most in due if outcome)


def _median(run: Run, begin: float, end: float) -> float:
    return statistics.median(each.latency for each in run.sent if begin <= each.at < end)


def recovery(run: Run, begin: float, most: float) -> float:
    """Returns the seconds from `begin` until requests take at most `most` seconds, by their median, for good.

    Args:
        run: What was sent; some of it after `begin`.
        begin: When to start looking, in seconds from the start of the run.
        most: Seconds.

    Returns:
        0 if none took longer; infinity if they still did at the end of the run.
    """
    steps = int((run.sent[-1].at - begin) / _STEP)
    slow = [
        step for step in range(steps) if _median(run, begin + step * _STEP, begin + (step + 1) * _STEP) > most
    ]
    if not slow:
        return 0.0
    return (slow[-1] + 1) * _STEP if slow[-1] + 1 < steps else math.inf


def _draw(measured: dict[str, Measured], outage: float) -> Figure:
    hedges = _hedges_until(measured[_HELD].run, _BEFORE + outage)
    figure = plots.new_figure(
        f"An outage of {outage:g} s costs {hedges} hedges and no message",
        f"Each dot is one of {_RATE} messages a second, placed when it was to be sent; latency is logarithmic.",
        width=12,
    )
    panels = figure.subplots(1, len(measured), sharex=True, sharey=True)
    for axes, (name, each) in zip(panels, measured.items(), strict=True):
        axes.axvspan(_BEFORE, _BEFORE + outage, color=plots.GRID, zorder=0)
        axes.scatter(
            [sent.at for sent in each.run.sent],
            [1000 * sent.latency for sent in each.run.sent],
            s=4,
            color=_COLORS[name],
            linewidths=0,
        )
        axes.set_title(name, loc="left", color=_COLORS[name])
        axes.set_xlabel("sent at, s (grey: the outage)", color=plots.GREY, fontsize=11)
        plots.latency_axis(axes, "y")
        plots.clean(axes)
    for axes in panels[1:]:
        axes.set_ylabel("")
    return figure
