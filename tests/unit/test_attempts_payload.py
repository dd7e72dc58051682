"""The payload is released at the outcome, whatever is still ending or scheduled."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge.settings import HedgingSettings, RetrySettings
from tests.unit.bench import Bench

if TYPE_CHECKING:
    from tests.unit.bench import Published


def _released(published: Published) -> bool:
    # Without a garbage collection: megabytes that wait for one are as bad as a leak.
    return published.batch() is None


def test_the_payload_is_kept_while_it_may_be_sent_again() -> None:
    """A batch that waits to retry can still be sent."""
    bench = Bench(None, RetrySettings(initial_retry_delay=5))
    published = bench.publish()
    bench.calls[0].refuse(grpc.StatusCode.UNAVAILABLE)
    bench.run_to(4)
    assert not _released(published)


def test_the_payload_is_released_at_the_outcome_with_a_long_hedge_timer_pending() -> None:
    """A hedge timer of 10 s does not hold the payloads of all batches of the last 10 s in memory."""
    bench = Bench(HedgingSettings(hedge_delay=10))
    batches = [bench.publish(request=bytes(1000)) for _ in range(50)]
    bench.run_to(0.005)
    for call in bench.calls:
        call.answer()
    bench.run_to(0.005)
    assert all(_released(published) for published in batches)
    assert bench.clock.pending() == 0


def test_the_payload_is_released_while_a_loser_is_still_ending() -> None:
    """A loser that is slow to end holds no payload, and a change to what the caller holds cannot reach it."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=1))
    bench.network.cancel_delay = 30
    published = bench.publish()
    bench.run_to(1.5)
    bench.calls[1].answer()
    bench.run_to(1.5)
    assert bench.calls[0].out
    assert published.ended == []
    assert _released(published)


@pytest.mark.parametrize("how", ["error", "cancel"])
def test_the_payload_is_released_when_the_batch_fails_or_is_cancelled(how: str) -> None:
    """A batch without success does not stay in memory either."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=1))
    bench.network.cancel_delay = 30
    published = bench.publish()
    bench.run_to(1.5)
    if how == "error":
        bench.calls[0].refuse(grpc.StatusCode.NOT_FOUND)
    else:
        published.attempts.cancel()
    bench.run_to(1.5)
    assert len(published.results) == 1
    assert _released(published)


def test_a_finished_batch_leaves_nothing_behind() -> None:
    """A publisher that runs for months does not grow: the attempts of a finished batch are garbage."""
    bench = Bench(HedgingSettings(hedge_delay=10, initial_tokens=1))
    published = bench.publish()
    bench.run_to(11)
    bench.calls[1].answer()
    bench.run_to(13)
    attempts = weakref.ref(published.attempts)
    del published
    bench.calls.clear()
    gc.collect()
    assert attempts() is None


def test_a_queued_hedge_is_not_sent_after_the_outcome() -> None:
    """A hedge that was due in the very turn of the answer sends no payload and spends no token."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=1))
    published = bench.publish()
    bench.at(1, bench.calls[0].answer)
    bench.run_to(9)
    assert bench.sends == [(0, 0)]
    assert bench.bucket.milli_tokens == 1100
    assert _released(published)
