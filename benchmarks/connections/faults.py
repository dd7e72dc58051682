"""What goes wrong on a path or in the server, with 1, 2 and 4 connections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks import plots
from benchmarks.connections.case import COLUMNS, SETTINGS_TEXT, Case, Load, measure
from benchmarks.disturbances import BlackHole, Disturbance, Stalls, Swallow
from benchmarks.report import Column, Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.connections.case import Measured, Options
    from benchmarks.disturbances import Programme

_COLORS = {1: plots.BAD, 2: plots.OURS, 4: plots.OTHERS[2]}
_PERCENTS = {50: "p50", 99: "p99", 99.9: "p99.9"}
_RATE = 200


@dataclass(frozen=True)
class _Fault:
    name: str
    programme: Programme
    profile: str = "fast"


def _faults(seconds: float) -> tuple[_Fault, ...]:
    outages = tuple(Disturbance(BlackHole(), at, 2) for at in (1, 7) if at + 2 < seconds)
    return (
        _Fault("a path loses all packets for 2 s", outages),
        _Fault("5 % of one connection's reads stall for 50 to 500 ms", (Disturbance(Stalls()),)),
        _Fault("a connection is half-open: it never answers again", (Disturbance(Swallow(), at=1),)),
        _Fault("the server is slow: 4 % take 300 ms, 1 % takes 4 s", (), "tail"),
    )


def compare_faults(options: Options) -> None:
    """Measures each fault with each number of connections, and writes a report."""
    seconds = 4.0 if options.quick else 13.0
    numbers = list(_COLORS)[: 2 if options.quick else None]
    measured: dict[str, dict[int, Measured]] = {}
    for fault in _faults(seconds):
        print(f"  {fault.name}", flush=True)
        load = Load(_RATE, seconds, fault.profile)
        cases = [Case(_connections(number), connections=number) for number in numbers]
        measured[fault.name] = {
            case.connections: measure(case, load, fault.programme, options.seed) for case in cases
        }
    rows = [
        {"connections": number, **each.row(fault)}
        for fault, cases in measured.items()
        for number, each in cases.items()
    ]
    text = (
        f"{_RATE} messages/s for {seconds:g} s; the server answers in 5 ms, if nothing else is said. "
        f"{SETTINGS_TEXT}\n\n"
        "Paths and connections: the one that was opened first. What a path has lost arrives when TCP sends it "
        "again, which can be a second after the path is back."
    )
    columns = (Column("name", "what happens"), Column("connections", "connections", "d"), *COLUMNS[1:])
    report = Report("connection_faults", "Faults with more and fewer connections", text, columns, rows)
    report.write(_draw(measured), options.out)


def _connections(number: int) -> str:
    return "1 connection" if number == 1 else f"{number} connections"


def _draw(measured: dict[str, dict[int, Measured]]) -> Figure:
    figure = plots.new_figure(
        "Most of what befalls one connection is not seen with two",
        f"{_RATE} messages/s. Latency is logarithmic; further left is better.\n"
        "Dots from left to right: half, 99 % and 99.9 % of the requests took at most so long.",
        width=12,
        height=7.5,
    )
    panels = figure.subplots(len(measured), 1, sharex=True)
    for axes, (fault, cases) in zip(panels, measured.items(), strict=True):
        for place, (number, each) in enumerate(reversed(cases.items())):
            values = [each.run.percentile_ms(percent) for percent in _PERCENTS]
            axes.plot(values, [place] * len(values), color=_COLORS[number], linewidth=3, alpha=0.35)
            axes.scatter(values, [place] * len(values), color=_COLORS[number], s=(45, 90, 135), zorder=3)
            axes.annotate(
                f"{each.run.extra_percent:+.1f} % requests",
                (values[-1], place),
                xytext=(12, 0),
                textcoords="offset points",
                va="center",
                fontsize=10,
                color=plots.GREY,
            )
        axes.set_title(fault, loc="left")
        axes.set_yticks(range(len(cases)), [_connections(number) for number in reversed(cases)])
        axes.set_ylim(-0.6, len(cases) - 0.4)
        plots.latency_axis(axes, "x", "")
        plots.clean(axes, "x")
    left, right = panels[0].get_xlim()
    panels[0].set_xlim(left, right * 3)
    panels[-1].set_xlabel("publish latency", color=plots.GREY, fontsize=11)
    return figure
