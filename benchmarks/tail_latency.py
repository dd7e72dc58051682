"""Publish latency with long tails, with and without hedging, beside the limit of what hedging can reach.

The workload "tail" is the one that Google published for its Rust client: 1 KiB messages, one a request, 200 a
second, answered in 5 ms (95 %), 300 ms (4 %) and 4 s (1 %). The limit is computed: what hedging without any
overhead, and with as many tokens as it wants, would have reached with the latencies that the server drew in the
hedged run. The load is open loop and the server runs in a process of its own. Run it with `python -m
benchmarks.tail_latency`, which takes about 25 minutes, or with `--quick`.
"""

from __future__ import annotations

import argparse
import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beam_hedge import HedgingPublisher, HedgingSettings
from benchmarks import plots
from benchmarks.amounts import Amount, parse
from benchmarks.limit import limit
from benchmarks.load import even, offer
from benchmarks.report import Column, Report
from benchmarks.server import serving
from benchmarks.spread import columns, spread
from benchmarks.workloads import WORKLOADS, Workload
from demo.result import percentile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.load import Run

_HEDGED = HedgingSettings(hedge_delay=0.1, max_tokens=50, refill_ratio=0.1)
PLAIN, HEDGED, LIMIT = "no hedging", "hedged", "limit"
_PERCENTS = {"p50_ms": 50, "p99_ms": 99, "p999_ms": 99.9, "max_ms": 100}
_AMOUNTS = (
    Amount("runs", 5, 1, "runs of each way, in turn"),
    Amount("warm_up", 5.0, 3.0, "seconds before the measurement"),
    Amount("duration", 30.0, 8.0, "seconds of the measurement"),
)
_COLUMNS = (
    Column("name", ""),
    Column("requests", "requests a run", ",d"),
    Column("p50_ms", "p50 ms", ".2f"),
    *columns("p99_ms", "p99 ms", ".1f"),
    *columns("p999_ms", "p99.9 ms", ".1f"),
    Column("max_ms", "max ms", ".0f"),
    *columns("extra_percent", "extra requests %", "+.2f"),
    Column("p99_to_limit", "p99 to the limit's", ".3f"),
    Column("p999_to_limit", "p99.9 to the limit's", ".3f"),
    Column("late_p99_ms", "load generator late, p99 ms", ".2f"),
)


@dataclass(frozen=True)
class Load:
    """What is published.

    Attributes:
        rate: Requests a second.
        warm_up: Seconds before the measurement.
        duration: Seconds of the measurement.
    """

    rate: float
    warm_up: float
    duration: float


@dataclass(frozen=True)
class Measured:
    """One run.

    Attributes:
        latencies_ms: In order.
        extra_percent: Further requests for each hundred.
        late_p99_ms: How late the load generator was.
    """

    latencies_ms: list[float]
    extra_percent: float
    late_p99_ms: float = 0.0

    @classmethod
    def of(cls, run: Run) -> Measured:
        """Returns what there is to say of a run."""
        return cls(run.latencies_ms, run.extra_percent, run.late_p99_ms)


def measure(
    settings: HedgingSettings | None, workload: Workload, load: Load, seed: int
) -> tuple[Measured, Measured]:
    """Publishes at a fixed rate, and keeps the latencies of what comes after the warm-up.

    Returns:
        What was measured, and the limit with the same latencies of the server.
    """
    times = even(load.rate, load.warm_up + load.duration)
    brownout = workload.middle(load.warm_up, load.duration)
    with serving(workload.profile, seed) as server, HedgingPublisher(server.topic, settings) as publisher:
        publisher.publish([b"opens the connection"]).result()
        begin = server.seen().requests
        run = offer(publisher, times, on_begin=lambda: server.disturb((brownout,))).since(load.warm_up)
        drawn = server.drawn(begin, server.seen().requests)
    delay: Any = settings.hedge_delay if settings else math.inf
    latencies, attempts = limit(times, drawn, delay, brownout.at_least)
    first = len(times) - len(run.sent)
    kept = sorted(1000 * latency for latency in latencies[first:])
    extra = 100 * (sum(attempts[first:]) / len(kept) - 1)
    return Measured.of(run), Measured(kept, extra)


def rows(measured: dict[str, list[Measured]]) -> list[dict[str, Any]]:
    """Returns the lines of the table: medians of the runs, with the least and the most.

    Args:
        measured: The runs of each way; as many for all of them.
    """
    percentiles = {
        name: {
            key: [percentile(run.latencies_ms, percent) for run in runs] for key, percent in _PERCENTS.items()
        }
        for name, runs in measured.items()
    }
    lines: list[dict[str, Any]] = []
    for name, runs in measured.items():
        line: dict[str, Any] = {"name": name, "requests": len(runs[0].latencies_ms)}
        for key, values in percentiles[name].items():
            line |= spread(key, values)
        for key in ("p99_ms", "p999_ms"):
            ratios = [
                one / least for one, least in zip(percentiles[name][key], percentiles[LIMIT][key], strict=True)
            ]
            line |= spread(key.replace("ms", "to_limit"), ratios)
        line |= spread("extra_percent", [run.extra_percent for run in runs])
        line |= spread("late_p99_ms", [run.late_p99_ms for run in runs])
        lines.append(line)
    return lines


def draw(measured: dict[str, list[Measured]], workload: Workload) -> Figure:
    """Draws how many requests took longer than a time, of all runs together.

    Args:
        measured: The runs of each way.
        workload: What the server does.
    """
    together = {name: sorted(ms for run in runs for ms in run.latencies_ms) for name, runs in measured.items()}
    hedged, plain = (percentile(together[name], 99) for name in (HEDGED, PLAIN))
    extra, unlimited = (
        statistics.median(run.extra_percent for run in measured[name]) for name in (HEDGED, LIMIT)
    )
    headline = f"With hedging, 99 % of requests take at most {hedged:.0f} ms; without, {plain:.0f} ms"
    if workload.brownout:
        headline = (
            f"In a brownout the budget stops hedging: {extra:.1f} % more requests, without it {unlimited:.0f} %"
        )
    figure = plots.new_figure(
        headline,
        f"The server answers: {workload.text}.\n{len(together[HEDGED]):,} requests each. Requests that hedging "
        f"adds: {extra:.1f} %. Both axes are logarithmic; further left is better.",
    )
    axes = figure.add_subplot()
    styles = {PLAIN: (plots.BAD, True), HEDGED: (plots.OURS, True), LIMIT: (plots.GREY, False)}
    for name, (color, strong) in styles.items():
        plots.draw_slower(axes, together[name], name, color, strong=strong)
    plots.latency_axis(axes, "x")
    plots.slower_axis(axes, len(together[HEDGED]))
    plots.clean(axes, "both")
    axes.legend(frameon=False, fontsize=12, labelcolor="linecolor", loc="upper right")
    return figure


def compare(workload: Workload, load: Load, runs: int, seed: int) -> dict[str, list[Measured]]:
    """Publishes with and without hedging in turn, several times over."""
    measured: dict[str, list[Measured]] = {PLAIN: [], HEDGED: [], LIMIT: []}
    for number in range(runs):
        plain, _ = measure(None, workload, load, seed + number)
        hedged, least = measure(_HEDGED, workload, load, seed + number)
        for name, each in zip(measured, (plain, hedged, least), strict=True):
            measured[name].append(each)
    return measured


def main() -> None:
    """Measures each workload, and writes a report for it."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--profile", help="a workload of your own instead, such as 0.9:0.005,0.1:0.3")
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second")
    parser.add_argument("--seed", type=int, default=1)
    args = parse(parser, _AMOUNTS)
    load = Load(args.rate, args.warm_up, args.duration)
    chosen = {name: WORKLOADS[name] for name in args.workloads}
    if args.profile:
        chosen = {"profile": Workload(args.profile, args.profile)}
    for name, workload in chosen.items():
        measured = compare(workload, load, args.runs, args.seed)
        text = (
            f"{load.rate:g} messages of 1 KiB a second, one a request, for {load.duration:g} s after "
            f"{load.warm_up:g} s of warm-up; medians of {args.runs} alternating runs. The server answers: "
            f"{workload.text}. Hedge delay 100 ms, 50 tokens, refill 0.1.\n\nThe limit is computed: no "
            "overhead, no budget, the latencies that the server drew in the hedged run."
        )
        file = "tail_latency" if name == "tail" else f"tail_latency_{name}"
        report = Report(file, f"Publish latency: {workload.text}", text, _COLUMNS, rows(measured))
        report.write(draw(measured, workload), args.out)


if __name__ == "__main__":
    main()
