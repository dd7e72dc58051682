"""A bench for the attempts of batches: a policy over a fake network, and a record of each batch."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from beam_hedge.attempts import BatchAttempts
from beam_hedge.batch import Batch
from beam_hedge.errors import PublishError
from beam_hedge.outcome import PublishOutcome
from beam_hedge.policy import Policy
from beam_hedge.settings import HedgingSettings, RetrySettings
from beam_hedge.testing import FakeClock
from beam_hedge.token_bucket import TokenBucket
from tests.unit.fakes import FakeConnections

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.interfaces import Trace
    from tests.unit.fakes import FakeCall

TOPIC = "projects/p-test/topics/out"
_EPOCH_NS = 1_700_000_000_123_456_789


class Published:
    """One batch on the bench.

    Attributes:
        attempts: What is tested.
        batch: A weak reference to the payload.
        start_time_ns: The batch's start time in its telemetry, which no other batch of the bench has.
        results: Each outcome with its time; there must be one in the end.
        ended: Each time that `on_ended` was called; there must be one in the end.
    """

    def __init__(
        self, bench: Bench, batch: Batch, accepted: float, start_time_ns: int, trace: Trace | None
    ) -> None:
        self._clock = bench.clock
        self.batch = weakref.ref(batch)
        self.start_time_ns = start_time_ns
        self.results: list[tuple[float, PublishOutcome | PublishError | None]] = []
        self.ended: list[float] = []
        self.attempts = BatchAttempts(
            bench.policy,
            batch,
            accepted=accepted,
            publish_start_time_ns=start_time_ns,
            on_outcome=self._on_outcome,
            on_ended=lambda: self.ended.append(self._clock.time()),
            trace=trace,
        )

    def _on_outcome(self, result: PublishOutcome | PublishError | None) -> None:
        self.results.append((self._clock.time(), result))

    @property
    def resolved_at(self) -> float:
        """When the only outcome came."""
        ((at, _),) = self.results
        return round(at, 6)

    @property
    def outcome(self) -> PublishOutcome:
        """The only outcome, a success."""
        ((_, result),) = self.results
        assert isinstance(result, PublishOutcome), result
        return result

    @property
    def error(self) -> PublishError:
        """The only outcome, an error."""
        ((_, result),) = self.results
        assert isinstance(result, PublishError), result
        return result


class Bench:
    """One publisher's policy in virtual time, starting at 0 s.

    Args:
        settings: Hedging; by default a bucket with enough tokens to stay out of the way.
        retry: Deadlines and retries.
        connections: How many connections there are.
        jitter: What `random()` gives; 1.0 makes each retry wait as long as it may.
        clock: The virtual time.
    """

    def __init__(
        self,
        settings: HedgingSettings | None = HedgingSettings(initial_tokens=50),  # noqa: B008 - frozen
        retry: RetrySettings = RetrySettings(),  # noqa: B008 - frozen
        *,
        connections: int = 2,
        jitter: Callable[[], float] = lambda: 1.0,
        bucket: TokenBucket | None = None,
        clock: FakeClock | None = None,
    ) -> None:
        self.clock = clock or FakeClock()
        self.network = FakeConnections(self.clock, connections)
        if bucket is None:
            bucket = (
                TokenBucket(0, 0.0)
                if settings is None
                else TokenBucket(settings.max_tokens, settings.refill_ratio, settings.initial_tokens)
            )
        self.bucket = bucket
        self.policy = Policy(self.clock, self.network, bucket, settings, retry, jitter)
        self._batches = 0

    def publish(
        self,
        *,
        messages: int = 1,
        request: bytes = b"request",
        queued: float = 0.0,
        trace: Trace | None = None,
    ) -> Published:
        """Starts a batch that was accepted `queued` seconds ago."""
        self._batches += 1
        batch = Batch(TOPIC, request, messages)
        published = Published(self, batch, self.clock.time() - queued, _EPOCH_NS + self._batches, trace)
        # The attempts alone decide how long the payload lives.
        del batch
        published.attempts.start()
        return published

    @property
    def calls(self) -> list[FakeCall]:
        """All calls so far."""
        return self.network.calls

    @property
    def sends(self) -> list[tuple[float, int]]:
        """When each call was sent and which hedge it was."""
        return [(round(call.sent_at, 6), call.hedge) for call in self.calls]

    def at(self, when: float, action: Callable[..., object], *args: object) -> None:
        """Schedules what the test does at a virtual time, behind the timers that are set already."""
        self.clock.call_at(when, action, *args)

    def run_to(self, when: float) -> None:
        """Moves time forward to `when`."""
        self.clock.advance(when - self.clock.time())
