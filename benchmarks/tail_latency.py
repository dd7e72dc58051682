"""Publish latency on the workload that Google published for its Rust client.

1 KiB messages, one a request, 200 a second, answered in 5 ms (95 %), 300 ms (4 %) and 4 s (1 %). Beside what
was measured stands the limit: what hedging without any overhead, and with as many tokens as it wants, would
have reached with the latencies that the server drew in the hedged run. The load is open loop and the server
runs in a process of its own. Run it with `python -m benchmarks.tail_latency`.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beam_hedge import HedgingPublisher, HedgingSettings
from benchmarks import plots
from benchmarks.limit import limit
from benchmarks.load import even, offer
from benchmarks.report import Column, Report, add_out
from benchmarks.server import serving
from demo.result import percentile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.load import Run

_HEDGED = HedgingSettings(hedge_delay=0.1, max_tokens=50, refill_ratio=0.1)
_PERCENTS = {"p50_ms": 50, "p99_ms": 99, "p999_ms": 99.9, "max_ms": 100}
_COLUMNS = (
    Column("name", ""),
    Column("requests", "requests", ",d"),
    Column("p50_ms", "p50 ms", ".2f"),
    Column("p99_ms", "p99 ms", ".1f"),
    Column("p999_ms", "p99.9 ms", ".1f"),
    Column("max_ms", "max ms", ".0f"),
    Column("extra_percent", "extra requests %", "+.2f"),
    Column("late_p99_ms", "load generator late, p99 ms", ".2f"),
)


@dataclass(frozen=True)
class Measured:
    """One line of the picture and of the table.

    Attributes:
        latencies_ms: In order.
        extra_percent: Further requests for each hundred.
        late_p99_ms: How late the load generator was.
    """

    latencies_ms: list[float]
    extra_percent: float
    late_p99_ms: float

    @classmethod
    def of(cls, run: Run) -> Measured:
        """Returns what there is to say of a run."""
        return cls(run.latencies_ms, run.extra_percent, run.late_p99_ms)


def measure(
    settings: HedgingSettings | None,
    *,
    profile: str,
    rate: float,
    warm_up: float,
    duration: float,
    seed: int,
) -> tuple[Measured, Measured]:
    """Publishes at a fixed rate for `warm_up` + `duration` seconds and keeps the latencies of the latter.

    Returns:
        What was measured, and the limit with the same latencies of the server.
    """
    times = even(rate, warm_up + duration)
    with serving(profile, seed) as server, HedgingPublisher(server.topic, settings) as publisher:
        publisher.publish([b"opens the connection"]).result()
        begin = server.seen().requests
        run = offer(publisher, times).since(warm_up)
        drawn = server.drawn(begin, server.seen().requests)
    latencies, attempts = limit(times, drawn, settings.hedge_delay if settings else math.inf)  # type: ignore[arg-type]
    first = len(times) - len(run.sent)
    kept = sorted(1000 * latency for latency in latencies[first:])
    extra = 100 * (sum(attempts[first:]) / len(kept) - 1)
    return Measured.of(run), Measured(kept, extra, 0.0)


def draw(measured: dict[str, Measured]) -> Figure:
    """Draws how many requests took longer than a time."""
    hedged, plain = measured["hedged"], measured["no hedging"]
    p99 = [percentile(each.latencies_ms, 99) for each in (hedged, plain)]
    figure = plots.new_figure(
        f"With hedging, 99 % of requests take at most {p99[0]:.0f} ms instead of {p99[1]:.0f} ms",
        f"{len(hedged.latencies_ms):,} requests each. Both axes are logarithmic; further left is better.\n"
        f"Requests that hedging adds: {hedged.extra_percent:.1f} %.",
    )
    axes = figure.add_subplot()
    styles = {"no hedging": (plots.BAD, True), "hedged": (plots.OURS, True), "limit": (plots.GREY, False)}
    for name, (color, strong) in styles.items():
        plots.draw_slower(axes, measured[name].latencies_ms, name, color, strong=strong)
    plots.latency_axis(axes, "x")
    plots.slower_axis(axes, len(hedged.latencies_ms))
    plots.clean(axes, "both")
    axes.legend(frameon=False, fontsize=12, labelcolor="linecolor", loc="upper right")
    return figure


def main() -> None:
    """Measures both ways of publishing, and writes a report."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--profile", default="tail", help="latencies of the server, such as 0.9:0.005,0.1:0.3")
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second")
    parser.add_argument("--warm_up", type=float, default=5.0, help="seconds")
    parser.add_argument("--duration", type=float, default=30.0, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    add_out(parser)
    args = parser.parse_args()
    load = {name: getattr(args, name) for name in ("profile", "rate", "warm_up", "duration", "seed")}
    plain, _ = measure(None, **load)
    hedged, least = measure(_HEDGED, **load)
    measured = {"no hedging": plain, "hedged": hedged, "limit": least}
    rows = [
        {
            "name": name,
            "requests": len(each.latencies_ms),
            **{key: percentile(each.latencies_ms, percent) for key, percent in _PERCENTS.items()},
            "extra_percent": each.extra_percent,
            "late_p99_ms": each.late_p99_ms,
        }
        for name, each in measured.items()
    ]
    text = (
        f"{args.rate:g} messages of 1 KiB a second, one a request, for {args.duration:g} s; "
        f"latencies of the server: {args.profile}. Hedge delay 100 ms, 50 tokens, refill 0.1.\n\n"
        "The limit is computed: no overhead, no budget, the latencies that the server drew in the hedged run."
    )
    Report("tail_latency", "Publish latency with a long tail", text, _COLUMNS, rows).write(
        draw(measured), args.out
    )


if __name__ == "__main__":
    main()
