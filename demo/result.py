"""What one run of the pipeline came to."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from demo.delivery import Delivery


@dataclass(frozen=True)
class Outcome:
    """One batch, as the pipeline reports it.

    Attributes:
        latency_ms: From when it was accepted for publishing to its acknowledgement.
        messages: How many messages it held.
        attempts: 1 + retries + hedges.
        hedges: Hedges sent.
        hedges_throttled: 1 if a due hedge found no token.
        winner: 0 if the original was answered first, else the hedge's number.
        retries: Further tries of the original.
    """

    latency_ms: float
    messages: int
    attempts: int
    hedges: int
    hedges_throttled: int
    winner: int
    retries: int


@dataclass(frozen=True)
class Result:
    """One run.

    Attributes:
        outcomes: Its batches, from the pipeline's own file of outcomes.
        requests: Publish requests that arrived at the server.
        publishing_s: Seconds from the first request's arrival to the last one's end, at the server.
        wall_s: Seconds from the program's start to its end.
        delivery: What the topic holds.
    """

    outcomes: Sequence[Outcome]
    requests: int
    publishing_s: float
    wall_s: float
    delivery: Delivery

    @property
    def latencies_ms(self) -> list[float]:
        """The batches' latencies, the shortest first."""
        return sorted(outcome.latency_ms for outcome in self.outcomes)

    @property
    def hedges_sent(self) -> int:
        """Hedges that the pipeline sent."""
        return sum(outcome.hedges for outcome in self.outcomes)

    @property
    def hedges_throttled(self) -> int:
        """Batches whose hedging ended for want of a token."""
        return sum(outcome.hedges_throttled for outcome in self.outcomes)

    @property
    def hedges_won(self) -> int:
        """Batches that a hedge published."""
        return sum(outcome.winner > 0 for outcome in self.outcomes)


def read_outcomes(path: Path) -> list[Outcome]:
    """Reads a file that the pipeline wrote with `--outcomes`."""
    return [Outcome(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def percentile(ascending: Sequence[float], percent: float) -> float:
    """Returns the smallest value that at least so many percent of all values do not exceed.

    Args:
        ascending: The values, the smallest first; at least one.
        percent: More than 0, at most 100.
    """
    # In thousandths: 0.999 x 1,000 is a little more than 999 as a float.
    rank = math.ceil(round(percent * 1000) * len(ascending) / 100_000)
    return ascending[max(rank, 1) - 1]
