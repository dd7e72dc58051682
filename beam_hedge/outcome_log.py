"""A log line, now and then, when publishing is slow or hedging has run out of budget."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from beam_hedge.outcome import PublishOutcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.errors import PublishError
    from beam_hedge.token_bucket import TokenBucket

INTERVAL = 60.0
# A hedged batch that took this many hedge delays was slow on every connection.
_SLOW_DELAYS = 3

_logger = logging.getLogger("beam_hedge")


class OutcomeLog:
    """Writes at most one line an interval for each of the two reasons, and says how many it stands for.

    A line's facts are also in its record's `beam_hedge` attribute, a dict, for loggers that keep structure.
    Used on the engine's thread only.

    Args:
        hedge_delay: The hedge delay, in seconds; what is slow is measured by it.
        bucket: The budget, to tell what is left of it.
        clock: Gives monotonic seconds.
    """

    def __init__(
        self, hedge_delay: float, bucket: TokenBucket, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._slow = _SLOW_DELAYS * hedge_delay
        self._bucket = bucket
        self._clock = clock
        self._written: dict[str, float] = {}
        self._unwritten: dict[str, int] = {}

    def note(self, outcome: PublishOutcome | PublishError) -> None:
        """Looks at one outcome or error; that a batch failed is for whoever gets the error to tell."""
        if outcome.hedges_throttled:
            self._write("hedging is throttled: no token for a late batch", outcome)
        elif isinstance(outcome, PublishOutcome) and outcome.latency >= self._slow:
            self._write("publishing is slow", outcome)

    def _write(self, reason: str, outcome: PublishOutcome | PublishError) -> None:
        now = self._clock()
        if now - self._written.get(reason, float("-inf")) < INTERVAL:
            self._unwritten[reason] = self._unwritten.get(reason, 0) + 1
            return
        self._written[reason] = now
        facts = {
            "topic": outcome.topic,
            "latency": round(outcome.latency, 3) if isinstance(outcome, PublishOutcome) else None,
            "attempts": outcome.attempts,
            "hedges": outcome.hedges,
            "tokens": self._bucket.milli_tokens / 1000,
            "unwritten": self._unwritten.pop(reason, 0),
        }
        _logger.warning(
            "%s: %s",
            reason,
            ", ".join(f"{name}={value}" for name, value in facts.items()),
            extra={"beam_hedge": {"reason": reason, **facts}},
        )
