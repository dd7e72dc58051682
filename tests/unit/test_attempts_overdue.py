"""When attempts tell that a connection is late, and which of them may try one that was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge.settings import HedgingSettings, RetrySettings
from tests.unit.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Collection

    from beam_hedge.batch import Batch
    from beam_hedge.interfaces import Call, Metadata
    from tests.unit.fakes import FakeCall

TOKENS = HedgingSettings(hedge_delay=1, initial_tokens=50)
NO_TOKENS = HedgingSettings(hedge_delay=1)
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


class Watched(Bench):
    """A bench that notes what the attempts tell the connections.

    Attributes:
        overdue: When an attempt was reported, and its place among all calls.
        probes: For each call whether it might be a probe.
    """

    def __init__(
        self,
        settings: HedgingSettings | None = TOKENS,
        retry: RetrySettings = RetrySettings(),  # noqa: B008 - frozen
        *,
        connections: int = 2,
    ) -> None:
        super().__init__(settings, retry, connections=connections)
        self.overdue: list[tuple[float, int]] = []
        self.probes: list[bool] = []
        send, overdue = self.network.send, self.network.overdue

        def watched_send(
            batch: Batch, metadata: Metadata, timeout: float, avoid: Collection[int], *, probe: bool
        ) -> tuple[int, FakeCall]:
            self.probes.append(probe)
            return send(batch, metadata, timeout, avoid, probe=probe)

        def watched_overdue(connection: int, call: Call) -> None:
            place = next(place for place, each in enumerate(self.calls) if each is call)
            assert self.calls[place].connection == connection
            assert self.calls[place].out
            self.overdue.append((round(self.clock.time(), 6), place))
            overdue(connection, call)

        self.network.send = watched_send  # type: ignore[method-assign]
        self.network.overdue = watched_overdue  # type: ignore[method-assign]


@pytest.mark.parametrize("settings", [TOKENS, NO_TOKENS])
def test_an_attempt_is_overdue_when_its_hedge_is_due(settings: HedgingSettings) -> None:
    """A connection that stalls is told from the others even while there is no token for a hedge."""
    bench = Watched(settings)
    bench.publish()
    bench.run_to(0.999)
    assert bench.overdue == []
    bench.run_to(1)
    assert bench.overdue == [(1, 0)]
    assert bench.network.known[0].suspect


def test_hedges_that_are_late_are_overdue_too() -> None:
    """Each connection that holds up a batch for a hedge delay is noticed."""
    bench = Watched(connections=3)
    bench.publish()
    bench.run_to(2)
    assert [place for at, place in bench.overdue if at == 2] == [0, 1]
    assert [each.suspect for each in bench.network.known] == [True, True, False]


def test_an_attempt_that_was_answered_in_time_is_not() -> None:
    """An answer that has reached the process when the hedge is due speaks for its connection."""
    bench = Watched()
    bench.publish()
    bench.at(1, bench.calls[0].answer)
    bench.run_to(5)
    assert bench.overdue == []
    assert not any(each.suspect for each in bench.network.known)


def test_a_retry_is_not_overdue_before_it_has_had_its_time() -> None:
    """A connection is not blamed for an attempt that another connection began."""
    bench = Watched(TOKENS, RetrySettings(initial_retry_delay=0.2))
    bench.publish()
    bench.at(0.6, bench.calls[0].refuse, UNAVAILABLE)
    bench.run_to(1.5)
    # The retry at 0.8 s was out when the hedge was due at 1 s, but younger than a hedge delay.
    assert bench.sends == [(0, 0), (0.8, 0), (1, 1)]
    assert bench.overdue == []
    bench.run_to(2)
    assert bench.overdue == [(2, 1), (2, 2)]


def test_nothing_is_overdue_without_hedging() -> None:
    """`settings=None` suspects nothing, however long an answer takes."""
    bench = Watched(None)
    bench.publish()
    bench.run_to(59)
    assert bench.overdue == []
    assert not any(each.suspect for each in bench.network.known)


def test_nothing_is_overdue_once_the_batch_is_over() -> None:
    """A batch that was cancelled or has failed says nothing about connections any more."""
    bench = Watched()
    cancelled, failed = bench.publish(), bench.publish()
    bench.at(0.5, cancelled.attempts.cancel)
    bench.at(0.5, bench.calls[1].refuse, grpc.StatusCode.NOT_FOUND)
    bench.run_to(10)
    assert failed.error.status is grpc.StatusCode.NOT_FOUND
    assert bench.overdue == []


def test_only_a_first_original_may_be_a_probe() -> None:
    """Hedges and retries, which a batch needs most, never try a connection that was suspected."""
    bench = Watched(TOKENS, RetrySettings(initial_retry_delay=0.2))
    bench.publish()
    bench.at(0.6, bench.calls[0].refuse, UNAVAILABLE)
    bench.run_to(2)
    assert bench.sends == [(0, 0), (0.8, 0), (1, 1), (2, 2)]
    assert bench.probes == [True, False, False, False]


def test_without_a_token_nothing_is_a_probe() -> None:
    """A batch is put at risk on a suspect only if a hedge can save it."""
    bench = Watched(HedgingSettings(hedge_delay=1, max_tokens=5, initial_tokens=1))
    bench.publish()
    assert bench.probes == [True]
    bench.run_to(1)
    assert bench.bucket.milli_tokens == 0
    bench.publish()
    assert bench.probes == [True, False, False]
    bench = Watched(None)
    bench.publish()
    assert bench.probes == [False]


def test_a_stalled_connection_is_left_alone_probed_and_trusted_again() -> None:
    """One stall costs one batch a hedge delay, and one probe a second tells when it is over."""
    bench = Watched(HedgingSettings(hedge_delay=0.1, initial_tokens=50))
    frozen = 0

    def freeze(call: FakeCall) -> None:
        if call.connection != frozen:
            bench.clock.call_later(0.001, call.answer)

    bench.network.on_send = freeze
    batches = []
    for step in range(30):
        bench.run_to(step / 10)
        if step == 20:
            bench.network.on_send = lambda call: bench.clock.call_later(0.001, call.answer)
        batches.append(bench.publish())
    bench.run_to(4)
    on_frozen = [round(call.sent_at, 3) for call in bench.calls if call.connection == frozen]
    # The first, a probe a second after the first suspicion and another a second later, which finds it thawed.
    assert on_frozen[:3] == [0, 1.1, 2.1]
    assert len(on_frozen) > 4
    assert [batch.outcome.hedges for batch in batches].count(1) == 2
    assert not bench.network.known[frozen].suspect


def test_a_retry_is_looked_at_although_no_hedge_will_come() -> None:
    """A retry that stalls makes its connection suspect, too, when the bucket was empty before it was sent."""
    bench = Watched(NO_TOKENS, RetrySettings(initial_retry_delay=1, max_retry_delay=1))
    bench.publish()
    bench.run_to(1.1)
    assert bench.overdue == [(1, 0)]
    bench.calls[0].refuse(UNAVAILABLE)
    bench.run_to(2.2)
    retry = bench.calls[1]
    assert retry.out
    bench.run_to(5)
    assert bench.overdue[1:] == [(round(retry.sent_at + 1, 6), 1)]
    assert len(bench.calls) == 2
