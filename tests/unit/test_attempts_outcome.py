"""Rule 6: what an outcome and an error tell, and cancellation."""

from __future__ import annotations

import grpc
import pytest

from beam_hedge.outcome import PublishOutcome
from beam_hedge.settings import HedgingSettings, RetrySettings
from tests.unit.bench import TOPIC, Bench

HEDGED = HedgingSettings(hedge_delay=1, initial_tokens=9)


def test_an_outcome_tells_the_whole_story() -> None:
    """Every field of an outcome is what happened: attempts are 1 + retries + hedges."""
    bench = Bench(HEDGED, RetrySettings(initial_retry_delay=0.2))
    published = bench.publish(messages=2, request=b"12345", queued=0.5)
    bench.at(0.3, bench.calls[0].refuse, grpc.StatusCode.UNAVAILABLE)
    bench.run_to(2)
    original, retry, first, second = bench.calls
    assert [call.hedge for call in (original, retry, first, second)] == [0, 0, 1, 2]
    bench.at(2.1, first.refuse, grpc.StatusCode.UNAVAILABLE)
    bench.at(2.25, second.answer, "a", "b")
    bench.run_to(9)
    assert published.outcome == PublishOutcome(
        topic=TOPIC,
        message_ids=("a", "b"),
        attempts=4,
        hedges=2,
        winner=2,
        retries=1,
        latency=2.75,
        hedges_failed=1,
        hedges_throttled=0,
        attempts_cancelled=1,
        messages=2,
        request_bytes=5,
        refusals=(grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAVAILABLE),
    )


def test_an_error_tells_the_whole_story() -> None:
    """Every count of an error is what happened."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=2), RetrySettings(initial_retry_delay=0.2))
    published = bench.publish(messages=2, request=b"12345")
    bench.at(0.3, bench.calls[0].refuse, grpc.StatusCode.UNAVAILABLE)
    bench.run_to(3)
    bench.at(3.1, bench.calls[2].refuse, grpc.StatusCode.UNAVAILABLE)
    bench.at(3.2, bench.calls[1].refuse, grpc.StatusCode.PERMISSION_DENIED)
    bench.run_to(9)
    error = published.error
    assert (error.messages, error.request_bytes, error.attempts, error.retries, error.hedges) == (2, 5, 4, 1, 2)
    assert (error.hedges_failed, error.hedges_throttled, error.attempts_cancelled) == (1, 1, 1)
    assert (error.topic, error.status) == (TOPIC, grpc.StatusCode.PERMISSION_DENIED)
    assert error.refusals == (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.PERMISSION_DENIED,
    )


def test_latency_includes_the_way_to_the_engine() -> None:
    """Latency runs from when `publish()` accepted the batch, so that a busy process shows in it."""
    bench = Bench(HEDGED)
    bench.run_to(100)
    published = bench.publish(queued=0.125)
    bench.at(100.25, bench.calls[0].answer)
    bench.run_to(101)
    assert published.outcome.latency == pytest.approx(0.375)


def test_a_retry_that_wins_is_the_original() -> None:
    """A retry is no hedge: the winner is attempt 0."""
    bench = Bench(HEDGED)
    published = bench.publish()
    bench.calls[0].refuse(grpc.StatusCode.UNAVAILABLE)
    bench.run_to(0.1)
    bench.calls[1].answer()
    bench.run_to(0.2)
    assert (published.outcome.winner, published.outcome.hedges, published.outcome.retries) == (0, 0, 1)


def test_cancelling_cancels_all_attempts() -> None:
    """A batch that its caller gave up is out nowhere any more, and refills nothing."""
    bench = Bench(HEDGED)
    bench.network.cancel_delay = 0.25
    published = bench.publish()
    bench.run_to(2)
    bench.at(2.5, published.attempts.cancel)
    bench.run_to(60)
    assert [call.cancelled_at for call in bench.calls] == [2.5, 2.5, 2.5]
    assert published.results == [(2.5, None)]
    assert published.ended == [2.75]
    assert bench.bucket.milli_tokens == 7000


def test_cancelling_while_the_original_waits_to_retry_ends_the_batch() -> None:
    """A batch that has nothing out ends the moment it is cancelled."""
    bench = Bench(HEDGED, RetrySettings(initial_retry_delay=0.8))
    published = bench.publish()
    bench.calls[0].refuse(grpc.StatusCode.UNAVAILABLE)
    bench.run_to(0.5)
    published.attempts.cancel()
    bench.run_to(60)
    assert published.results == [(0.5, None)]
    assert published.ended == [0.5]
    assert bench.sends == [(0, 0)]
    assert bench.clock.pending() == 0


def test_cancelling_twice_is_cancelling_once() -> None:
    """A second cancellation is harmless."""
    bench = Bench(HEDGED)
    published = bench.publish()
    published.attempts.cancel()
    published.attempts.cancel()
    bench.run_to(5)
    assert published.results == [(0, None)]
    assert published.ended == [0]


def test_cancelling_after_the_outcome_changes_nothing() -> None:
    """A batch that is published stays published."""
    bench = Bench(HEDGED)
    bench.network.cancel_delay = 0.5
    published = bench.publish()
    bench.run_to(1)
    bench.calls[0].answer()
    bench.run_to(1.1)
    published.attempts.cancel()
    bench.run_to(9)
    assert published.outcome.winner == 0
    assert published.ended == [1.5]


def test_cancelling_while_a_final_error_is_being_settled_gives_one_outcome() -> None:
    """A caller who gives up in the moment of the error gets one of the two, not both."""
    bench = Bench(HEDGED)
    published = bench.publish()
    bench.calls[0].refuse(grpc.StatusCode.NOT_FOUND)
    bench.clock.call_soon(bench.clock.call_soon, published.attempts.cancel)
    bench.run_to(9)
    assert len(published.results) == 1
    assert published.ended == [0]


def test_a_success_that_arrives_after_the_cancellation_is_no_outcome() -> None:
    """A cancelled batch has no second outcome, though the service may have stored it."""
    bench = Bench(HEDGED)
    bench.network.cancel_delay = 0.5
    published = bench.publish()
    published.attempts.cancel()
    bench.at(0.25, bench.calls[0].answer)
    bench.run_to(9)
    assert published.results == [(0, None)]
    assert published.ended == [0.25]
    assert bench.bucket.milli_tokens == 9000
