"""One measurement: a publisher, a load and what happens to its connections meanwhile."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beam_hedge import HedgingPublisher, HedgingSettings
from benchmarks.load import even, offer
from benchmarks.report import Column
from benchmarks.rules import in_place
from benchmarks.server import serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.disturbances import Programme
    from benchmarks.load import Run

# The defaults but for the delay; the warm-up earns the tokens.
HEDGED = HedgingSettings(hedge_delay=0.1, max_tokens=50, refill_ratio=0.1)
SETTINGS_TEXT = "1 KiB a message, one a request. Hedge delay 100 ms, 50 tokens, none at the start, refill 0.1."

COLUMNS = (
    Column("name", ""),
    Column("requests", "requests", ",d"),
    Column("p50_ms", "p50 ms", ".1f"),
    Column("p95_ms", "p95 ms", ".1f"),
    Column("p99_ms", "p99 ms", ".1f"),
    Column("p999_ms", "p99.9 ms", ".1f"),
    Column("max_ms", "max ms", ".0f"),
    Column("extra_percent", "extra requests %", "+.2f"),
    Column("failed", "failed", "d"),
    Column("suspected", "connections suspected", "d"),
    Column("replaced", "replaced", "d"),
    Column("late_p99_ms", "load generator late, p99 ms", ".2f"),
)
_PERCENTS = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99, "p999_ms": 99.9, "max_ms": 100}


@dataclass(frozen=True)
class Options:
    """What the command line says of all parts.

    Attributes:
        quick: Whether runs are short.
        seed: The seed of all that is random.
        which: Which connection is frozen; see `benchmarks.disturbances.repeated`.
        out: The folder for reports.
    """

    quick: bool
    seed: int
    which: str
    out: Path


@dataclass(frozen=True)
class Case:
    """A way of publishing.

    Attributes:
        name: What it is called.
        settings: Of the publisher.
        connections: Of the publisher.
        rule: How connections are chosen; `None` for the library's own way.
    """

    name: str
    settings: HedgingSettings | None = HEDGED
    connections: int = 2
    rule: Callable[..., object] | None = None


@dataclass(frozen=True)
class Load:
    """What is published.

    Attributes:
        rate: Requests a second.
        seconds: How long, after the warm-up.
        profile: The latencies of the server.
        warm_up: Seconds.
    """

    rate: float
    seconds: float
    profile: str = "none"
    warm_up: float = 3.0


@dataclass(frozen=True)
class Measured:
    """What came of it.

    Attributes:
        run: What became of the requests.
        arrived: Messages that arrived at the server, those of hedges and retries included.
        suspected: How often a connection became suspect.
        replaced: How many connections were given up.
    """

    run: Run
    arrived: int
    suspected: int
    replaced: int

    def row(self, name: str) -> dict[str, Any]:
        """Returns it as a row of a table with `COLUMNS`."""
        run = self.run
        return {
            "name": name,
            "requests": len(run.sent),
            **{key: run.percentile_ms(percent) for key, percent in _PERCENTS.items()},
            "extra_percent": run.extra_percent,
            "failed": run.failed,
            "suspected": self.suspected,
            "replaced": self.replaced,
            "late_p99_ms": run.late_p99_ms,
        }


def measure(case: Case, load: Load, programme: Programme, seed: int) -> Measured:
    """Publishes the load while the programme runs.

    Args:
        case: How.
        load: What.
        programme: What happens to the connections, from the end of the warm-up on.
        seed: Of the server's latencies, and of what is random in the programme.
    """
    with (
        in_place(case.rule),
        serving(load.profile, seed) as server,
        HedgingPublisher(server.topic, case.settings, connections=case.connections) as publisher,
    ):
        offer(publisher, even(load.rate, load.warm_up))
        publisher.connection_counts.take()
        before = server.seen().messages
        times = even(load.rate, load.seconds)
        run = offer(publisher, times, on_begin=functools.partial(server.disturb, programme))
        counts = publisher.connection_counts.take()
        measured = Measured(
            run,
            server.seen().messages - before,
            counts["connections_suspected"],
            counts["connections_replaced"],
        )
    print(f"  {case.name}: p50 {run.percentile_ms(50):.1f}, p99 {run.percentile_ms(99):.1f} ms", flush=True)
    return measured
