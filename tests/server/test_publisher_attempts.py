"""How attempts end at the server: losers cancelled, deadlines kept, wrong answers refused."""

from __future__ import annotations

import concurrent.futures
import threading

import grpc
import pytest

from beam_hedge import HedgingPublisher, InvalidSettingError, PublishError, RetrySettings
from beam_hedge.testing import NEVER, Reply
from tests.server.serving import EAGER, PATIENCE, TOPIC, UNHURRIED, all_ended, by_attempt, by_number, serving


def test_losers_are_cancelled_at_the_server() -> None:
    """A published batch leaves no work behind at the service."""
    with serving(by_attempt(NEVER, NEVER, None)) as server, HedgingPublisher(TOPIC, EAGER) as publisher:
        outcome = publisher.publish([b"x"]).result(PATIENCE)
        original, hedge, winner = all_ended(server, 3)
    assert (original.cancelled, hedge.cancelled, winner.cancelled) == (True, True, False)
    assert (outcome.winner, outcome.attempts_cancelled) == (2, 2)
    assert outcome.message_ids == winner.message_ids


def test_the_original_can_win_and_its_hedge_is_cancelled() -> None:
    """A hedge is no handover: the original's answer counts if it comes first."""
    hedged = threading.Event()
    with (
        serving(by_attempt(Reply(until=hedged), NEVER)) as server,
        HedgingPublisher(TOPIC, EAGER) as publisher,
    ):
        future = publisher.publish([b"x"])
        server.wait_for(lambda ledger: ledger.hedges == 1, timeout=PATIENCE)
        hedged.set()
        outcome = future.result(PATIENCE)
        original, *hedges = all_ended(server, 2)
    assert (outcome.winner, outcome.message_ids) == (0, original.message_ids)
    assert all(hedge.cancelled for hedge in hedges)


def test_a_quick_answer_costs_no_hedge_and_no_token() -> None:
    """Hedging is free as long as the service is quick."""
    with serving() as server, HedgingPublisher(TOPIC, UNHURRIED) as publisher:
        for _ in range(50):
            assert publisher.publish([b"x"]).result(PATIENCE).attempts == 1
        assert server.ledger().requests == 50
        assert publisher.token_bucket.milli_tokens == 25_000


def test_tries_and_hedges_have_the_deadlines_of_the_settings() -> None:
    """A try ends with its own timeout, a hedge with what is left of the batch's time or after 10 s."""
    retry = RetrySettings(initial_rpc_timeout=40, total_timeout=60)
    with (
        serving(by_attempt(NEVER, None)) as server,
        HedgingPublisher(TOPIC, EAGER, retry_settings=retry) as publisher,
    ):
        publisher.publish([b"x"]).result(PATIENCE)
        original, hedge = all_ended(server, 2)
    assert original.time_left is not None
    assert hedge.time_left is not None
    # gRPC rounds deadlines up to three digits.
    assert 35 < original.time_left <= 40.1
    assert 5 < hedge.time_left <= 10.1


def test_total_timeout_bounds_tries_and_hedges() -> None:
    """No attempt outlives the time that the batch has in all."""
    retry = RetrySettings(initial_rpc_timeout=40, total_timeout=8)
    with (
        serving(by_attempt(NEVER, None)) as server,
        HedgingPublisher(TOPIC, EAGER, retry_settings=retry) as publisher,
    ):
        publisher.publish([b"x"]).result(PATIENCE)
        original, hedge = all_ended(server, 2)
    assert original.time_left is not None
    assert hedge.time_left is not None
    # gRPC rounds deadlines up to three digits; the hedge was sent at least 0.1 s later.
    assert 4 < original.time_left <= 8.01
    assert 4 < hedge.time_left <= 7.95


def test_a_try_that_times_out_is_retried_and_the_batch_ends_with_its_time() -> None:
    """A service that never answers costs the total timeout, not for ever, and the error says so."""
    retry = RetrySettings(initial_rpc_timeout=0.2, total_timeout=0.7, initial_retry_delay=0.01)
    with serving(NEVER) as server, HedgingPublisher(TOPIC, None, retry_settings=retry) as publisher:
        error = publisher.publish([b"x"]).exception(PATIENCE)
        records = all_ended(server, 2)
    assert isinstance(error, PublishError)
    assert error.status is grpc.StatusCode.DEADLINE_EXCEEDED
    assert error.retries == error.attempts - 1 == len(records) - 1 >= 1
    assert all(record.cancelled and record.time_left and record.time_left > 0 for record in records)


def test_cancelling_the_future_cancels_all_attempts() -> None:
    """A caller who gives up leaves nothing running at the service, and others are not disturbed."""
    with serving(by_attempt(NEVER)) as server, HedgingPublisher(TOPIC, EAGER) as publisher:
        future = publisher.publish([b"x"])
        server.wait_for(lambda ledger: ledger.hedges == 2, timeout=PATIENCE)
        assert future.cancel()
        records = all_ended(server, 3)
        with pytest.raises(concurrent.futures.CancelledError):
            future.result(PATIENCE)
        server.script = None
        publisher.publish([b"y"]).result(PATIENCE)
    assert all(record.cancelled for record in records)


def test_a_future_cancelled_at_once_ends_and_gives_back_its_permits() -> None:
    """Cancelling right after publishing, before anything was sent, leaves nothing behind."""
    with serving() as server, HedgingPublisher(TOPIC, EAGER) as publisher:
        futures = [publisher.publish([b"x"]) for _ in range(200)]
        cancelled = sum(future.cancel() for future in futures)
        concurrent.futures.wait(futures, PATIENCE)
        assert all(future.done() for future in futures)
        assert publisher._flow.wait_idle(PATIENCE)
        all_ended(server, 200 - cancelled)
        assert publisher._channels.out == (0, 0)


def test_a_final_error_names_what_failed_and_what_to_do() -> None:
    """The error of a batch says topic, status, size and remedy, and holds no payload."""
    with serving() as server, HedgingPublisher(TOPIC, EAGER) as publisher:
        server.delete_topic(TOPIC)
        error = publisher.publish([b"secret-payload", b"y"]).exception(PATIENCE)
    assert isinstance(error, PublishError)
    assert (error.topic, error.status, error.attempts) == (TOPIC, grpc.StatusCode.NOT_FOUND, 1)
    text = str(error)
    assert all(part in text for part in (TOPIC, "NOT_FOUND", "2 messages", "Create the topic"))
    assert "secret-payload" not in text + repr(error)


@pytest.mark.parametrize("characters", [1000, 3000])
def test_a_long_text_of_the_server_is_cut(characters: int) -> None:
    """An error of the service keeps its status, does not flood the logs, and stays valid text."""
    script = Reply(status=grpc.StatusCode.PERMISSION_DENIED, details="é" * characters)
    retry = RetrySettings(total_timeout=3)
    with serving(script), HedgingPublisher(TOPIC, retry_settings=retry) as publisher:
        error = publisher.publish([b"x"]).exception(PATIENCE)
    assert isinstance(error, PublishError)
    assert (error.status, error.attempts) == (grpc.StatusCode.PERMISSION_DENIED, 1)
    assert 1000 < len(error.details.encode()) <= 1024
    assert len(str(error).encode()) < 2048


def test_hedges_go_on_while_the_original_waits_to_retry() -> None:
    """A retry that waits long does not hold back the hedge that would succeed now."""
    retry = RetrySettings(initial_retry_delay=30, max_retry_delay=30)
    script = by_number(Reply(status=grpc.StatusCode.UNAVAILABLE))
    with serving(script) as server, HedgingPublisher(TOPIC, EAGER, retry_settings=retry) as publisher:
        outcome = publisher.publish([b"x"]).result(PATIENCE)
        records = all_ended(server, 2)
    assert (outcome.winner, outcome.retries, outcome.attempts) == (1, 0, 2)
    assert outcome.attempts_cancelled == 0
    assert len(records) == 2


def test_a_publisher_without_a_topic_of_its_own_wants_one_with_each_call() -> None:
    """One publisher can serve many topics, and a call that names none is refused before anything is sent."""
    with serving() as server, HedgingPublisher(None, UNHURRIED) as publisher:
        with pytest.raises(InvalidSettingError, match="topic must be named"):
            publisher.publish([b"x"])
        publisher.publish([b"x"], TOPIC).result(PATIENCE)
        assert server.ledger().requests == 1
