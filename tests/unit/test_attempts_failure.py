"""Rule 4: what fails a batch, and what must not."""

from __future__ import annotations

import grpc
import pytest

from beam_hedge.settings import HedgingSettings, RetrySettings
from tests.unit.bench import TOPIC, Bench

HEDGED = HedgingSettings(hedge_delay=1, initial_tokens=9)


@pytest.mark.parametrize("status", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_an_error_of_a_hedge_is_dropped_and_counted(status: grpc.StatusCode) -> None:
    """A hedge's error, whatever its status, never fails a batch whose original is alive, nor is it retried."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=1))
    published = bench.publish()
    bench.run_to(1)
    bench.calls[1].refuse(status)
    bench.run_to(50)
    assert published.results == []
    assert bench.sends == [(0, 0), (1, 1)]
    bench.calls[0].answer("original")
    bench.run_to(50)
    outcome = published.outcome
    assert (outcome.message_ids, outcome.hedges_failed, outcome.attempts_cancelled) == (("original",), 1, 0)


def test_a_hedge_that_is_cancelled_at_the_outcome_has_not_failed() -> None:
    """A loser is counted as cancelled, and only there."""
    bench = Bench(HEDGED)
    published = bench.publish()
    bench.run_to(2)
    bench.calls[1].refuse(grpc.StatusCode.UNAVAILABLE)
    bench.run_to(2.5)
    bench.calls[0].answer()
    bench.run_to(5)
    assert (
        published.outcome.hedges,
        published.outcome.hedges_failed,
        published.outcome.attempts_cancelled,
    ) == (2, 1, 1)


def test_a_hedge_error_in_the_turn_of_the_success_is_counted_once() -> None:
    """A hedge that ends together with the winner is in one of the two counts, not in both."""
    bench = Bench(HEDGED)
    published = bench.publish()
    bench.run_to(1.5)
    bench.calls[0].answer()
    bench.calls[1].refuse(grpc.StatusCode.UNAVAILABLE)
    bench.run_to(5)
    outcome = published.outcome
    assert outcome.hedges_failed + outcome.attempts_cancelled == 1
    assert bench.calls[1].cancelled_at is None


def test_a_hedge_that_dies_with_its_deadline_is_counted_as_failed() -> None:
    """A hedge that nobody answers is dropped after 10 s, and the batch lives on."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=1))
    published = bench.publish()
    bench.run_to(12)
    assert published.results == []
    bench.calls[0].answer()
    bench.run_to(12)
    assert published.outcome.hedges_failed == 1


def test_a_final_error_of_the_original_ends_the_batch_and_cancels_its_hedges() -> None:
    """A batch that cannot succeed fails at once, whatever a hedge would have said later."""
    bench = Bench(HedgingSettings(hedge_delay=0.1, initial_tokens=1))
    published = bench.publish()
    bench.at(0.3, bench.calls[0].refuse, grpc.StatusCode.INVALID_ARGUMENT, "bad message")
    bench.run_to(0.1)
    bench.at(0.6, bench.calls[1].answer)
    bench.run_to(5)
    assert published.resolved_at == 0.3
    assert bench.calls[1].cancelled_at == pytest.approx(0.3)
    error = published.error
    assert (error.topic, error.status, error.details) == (
        TOPIC,
        grpc.StatusCode.INVALID_ARGUMENT,
        "bad message",
    )
    assert (error.attempts, error.hedges, error.attempts_cancelled, error.hedges_failed) == (2, 1, 1, 0)


def test_the_hedges_error_at_once_and_the_originals_success_later_is_a_success() -> None:
    """A batch whose original is slow but well succeeds with the original's ids."""
    bench = Bench(HedgingSettings(hedge_delay=0.1, initial_tokens=1))
    published = bench.publish()
    bench.run_to(0.1)
    bench.calls[1].refuse(grpc.StatusCode.PERMISSION_DENIED)
    bench.at(0.8, bench.calls[0].answer, "original")
    bench.run_to(5)
    assert published.outcome.message_ids == ("original",)
    assert (published.outcome.hedges_failed, published.outcome.winner) == (1, 0)


def test_a_failed_batch_refills_nothing() -> None:
    """Only published batches pay for hedges."""
    bench = Bench(HEDGED)
    bench.publish()
    bench.run_to(1)
    bench.calls[0].refuse(grpc.StatusCode.NOT_FOUND)
    bench.run_to(5)
    assert bench.bucket.milli_tokens == 8000


@pytest.mark.parametrize("ids", [0, 2, 4])
def test_a_wrong_number_of_ids_on_the_original_is_a_final_internal_error(ids: int) -> None:
    """Messages that the service has stored are not sent again because its answer makes no sense."""
    bench = Bench(HEDGED)
    published = bench.publish(messages=3)
    bench.at(0.5, bench.calls[0].answer_ids, ids)
    bench.run_to(100)
    assert bench.sends == [(0, 0)]
    assert published.resolved_at == 0.5
    assert published.error.status is grpc.StatusCode.INTERNAL
    assert f"{ids} ids came back for 3 messages" in str(published.error)
    assert bench.bucket.milli_tokens == 9000


@pytest.mark.parametrize("ids", [0, 2, 4])
def test_a_wrong_number_of_ids_on_a_hedge_is_dropped(ids: int) -> None:
    """A hedge's senseless answer neither publishes nor fails the batch."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=1))
    published = bench.publish(messages=3)
    bench.at(1.5, lambda: bench.calls[1].answer_ids(ids))
    bench.run_to(2)
    assert published.results == []
    bench.calls[0].answer("a", "b", "c")
    bench.run_to(3)
    outcome = published.outcome
    assert (outcome.message_ids, outcome.winner, outcome.hedges_failed) == (("a", "b", "c"), 0, 1)


def test_a_final_refusal_is_not_retried_whatever_its_status() -> None:
    """An error that the connection calls final is final, though its status could be retried."""
    bench = Bench(HEDGED)
    published = bench.publish()
    bench.calls[0].refuse(grpc.StatusCode.INTERNAL, "broken", final=True)
    bench.run_to(30)
    assert bench.sends == [(0, 0)]
    assert published.resolved_at == 0


def test_a_failed_batch_waits_for_its_hedges_one_second_at_most() -> None:
    """Permits of a failed batch come back as those of a published one do."""
    bench = Bench(HEDGED)
    bench.network.cancel_delay = 5
    published = bench.publish()
    bench.run_to(1)
    bench.at(1.25, bench.calls[0].refuse, grpc.StatusCode.NOT_FOUND)
    bench.run_to(20)
    assert published.resolved_at == 1.25
    assert published.ended == [2.25]


def test_an_error_after_the_last_retry_names_the_last_status() -> None:
    """A user sees why the last try failed, and how many there were."""
    bench = Bench(None, RetrySettings(initial_rpc_timeout=1, total_timeout=2, initial_retry_delay=0.9))
    published = bench.publish()
    bench.calls[0].refuse(grpc.StatusCode.UNAVAILABLE, "first")
    bench.run_to(1)
    bench.at(1.5, bench.calls[1].refuse, grpc.StatusCode.ABORTED, "second")
    bench.run_to(1.5)
    error = published.error
    assert (error.status, error.details, error.retries, error.attempts) == (
        grpc.StatusCode.ABORTED,
        "second",
        1,
        2,
    )
    assert published.resolved_at == 1.5
