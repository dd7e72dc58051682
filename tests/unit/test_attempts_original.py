"""Rule 1: the original attempt, its retries and its deadlines."""

from __future__ import annotations

import itertools
import random
from operator import attrgetter

import grpc
import pytest

from beam_hedge.settings import HedgingSettings, RetrySettings
from beam_hedge.testing import FakeClock
from tests.unit.bench import Bench

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
RETRYABLE = {
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNKNOWN,
}
FINAL = sorted(set(grpc.StatusCode) - RETRYABLE - {grpc.StatusCode.OK}, key=attrgetter("name"))


def test_the_original_is_sent_at_once_with_the_rpc_timeout() -> None:
    """A batch leaves the moment it is started, with the deadline that the user set for one try."""
    bench = Bench(retry=RetrySettings(initial_rpc_timeout=7))
    bench.publish(request=b"payload")
    (call,) = bench.calls
    assert (call.sent_at, call.hedge, call.request, call.timeout, call.avoid) == (0, 0, b"payload", 7, ())


def test_a_total_timeout_shorter_than_the_rpc_timeout_bounds_the_first_try() -> None:
    """A batch never outlives the total timeout, not even in its first try."""
    bench = Bench(retry=RetrySettings(initial_rpc_timeout=60, total_timeout=2))
    published = bench.publish()
    assert bench.calls[0].timeout == 2
    bench.run_to(10)
    assert published.resolved_at == 2
    assert published.error.status is grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize("status", sorted(RETRYABLE, key=attrgetter("name")), ids=attrgetter("name"))
def test_a_retryable_error_is_tried_again(status: grpc.StatusCode) -> None:
    """A passing trouble of the service costs a wait, not the batch."""
    bench = Bench(None)
    published = bench.publish()
    bench.calls[0].refuse(status, "try again")
    bench.run_to(0.1)
    assert bench.sends == [(0, 0), (0.1, 0)]
    bench.calls[1].answer("id")
    bench.run_to(0.1)
    assert published.outcome.message_ids == ("id",)
    assert (published.outcome.retries, published.outcome.attempts, published.outcome.hedges) == (1, 2, 0)


@pytest.mark.parametrize("status", FINAL, ids=attrgetter("name"))
def test_any_other_error_is_final(status: grpc.StatusCode) -> None:
    """An error that will not go away is told at once, with its status and text."""
    bench = Bench()
    published = bench.publish()
    bench.at(0.3, bench.calls[0].refuse, status, "why")
    bench.run_to(700)
    assert bench.sends == [(0, 0)]
    assert published.resolved_at == 0.3
    assert (published.error.status, published.error.details) == (status, "why")


def test_a_size_error_is_final_although_its_status_is_that_of_a_quota() -> None:
    """A message over a size limit fails at once: it can never succeed."""
    bench = Bench(retry=RetrySettings())
    published = bench.publish()
    bench.calls[0].refuse(
        grpc.StatusCode.RESOURCE_EXHAUSTED, "Received message larger than max (4194323 vs. 4194304)"
    )
    bench.run_to(700)
    assert bench.sends == [(0, 0)]
    assert published.resolved_at == 0
    assert "4194323" in str(published.error)


def test_a_spent_quota_is_tried_again() -> None:
    """A spent quota costs waits, not the batch."""
    bench = Bench(None)
    published = bench.publish()
    for number in range(2):
        bench.calls[number].refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, "quota exceeded")
        bench.clock.advance(0.5)
    bench.calls[2].answer()
    bench.run_to(2)
    assert published.outcome.retries == 2


@pytest.mark.parametrize("jitter", [0.0, 0.25, 1.0])
def test_each_retry_waits_in_the_upper_half_of_its_interval(jitter: float) -> None:
    """Waits grow by the multiplier up to the longest, and each is drawn from [d/2, d]."""
    retry = RetrySettings(
        initial_rpc_timeout=50,
        total_timeout=600,
        initial_retry_delay=0.1,
        retry_delay_multiplier=4,
        max_retry_delay=20,
    )
    bench = Bench(None, retry, jitter=lambda: jitter)
    bench.publish()
    share = 0.5 + jitter / 2
    due = 0.0
    for longest in (0.1, 0.4, 1.6, 6.4, 20, 20, 20):
        bench.calls[-1].refuse(UNAVAILABLE)
        bench.run_to(due)
        sent = len(bench.calls)
        due += longest * share
        bench.run_to(due - 1e-6)
        assert len(bench.calls) == sent
        bench.run_to(due)
        assert len(bench.calls) == sent + 1
        assert bench.calls[-1].sent_at == pytest.approx(due)


def test_retry_waits_are_drawn_anew_each_time() -> None:
    """Batches that fail together do not come back together."""
    bench = Bench(None, RetrySettings(retry_delay_multiplier=1), jitter=random.Random(7).random)
    bench.publish()
    for _ in range(200):
        bench.calls[-1].refuse(UNAVAILABLE)
        bench.clock.advance(0.1)
    times = [call.sent_at for call in bench.calls]
    waits = [after - 0.1 * number for number, after in enumerate(times[1:])]
    assert all(0.05 - 1e-9 <= wait <= 0.1 + 1e-9 for wait in waits)
    assert max(waits) - min(waits) > 0.04


def test_each_retry_gets_the_smaller_of_rpc_timeout_and_rest_of_the_total() -> None:
    """The last try ends with the total timeout, and no try is sent without time left."""
    retry = RetrySettings(
        initial_rpc_timeout=1,
        total_timeout=3,
        initial_retry_delay=0.2,
        retry_delay_multiplier=2,
        max_retry_delay=60,
    )
    bench = Bench(None, retry)
    published = bench.publish()
    bench.run_to(10)
    assert bench.sends == [(0, 0), (1.2, 0), (2.6, 0)]
    assert [call.timeout for call in bench.calls] == pytest.approx([1, 1, 0.4])
    assert published.resolved_at == 3
    assert (published.error.retries, published.error.attempts) == (2, 3)


@pytest.mark.parametrize(("refused_at", "retries"), [(7.99, 1), (8.0, 0), (9.0, 0)])
def test_a_retry_that_would_come_at_the_end_of_the_total_timeout_is_not_waited_for(
    refused_at: float, retries: int
) -> None:
    """A batch that cannot be tried again fails at once instead of waiting for nothing."""
    bench = Bench(
        None, RetrySettings(initial_rpc_timeout=9.5, total_timeout=10, initial_retry_delay=2, max_retry_delay=2)
    )
    published = bench.publish()
    bench.at(refused_at, bench.calls[0].refuse, UNAVAILABLE, "gone")
    bench.run_to(20)
    assert [call.timeout for call in bench.calls[1:]] == pytest.approx([0.01] * retries)
    assert published.resolved_at == (10 if retries else refused_at)
    assert published.error.retries == retries


def test_the_total_timeout_runs_from_the_first_send_not_from_when_the_batch_was_accepted() -> None:
    """Time in the process's own queue is not taken off the time that the service has."""
    bench = Bench(None, RetrySettings(initial_rpc_timeout=60, total_timeout=2))
    published = bench.publish(queued=1.5)
    bench.run_to(1.999)
    assert published.results == []
    bench.run_to(2)
    assert published.resolved_at == 2


def test_a_retry_takes_another_connection_than_the_try_that_failed() -> None:
    """A connection that is broken does not get the same batch again while there is another."""
    bench = Bench(None, connections=3)
    bench.publish()
    for _ in range(6):
        bench.calls[-1].refuse(UNAVAILABLE)
        bench.clock.advance(60)
    used = [call.connection for call in bench.calls]
    assert len(used) == 7
    assert all(before != after for before, after in itertools.pairwise(used))
    assert [call.avoid for call in bench.calls[1:]] == [(connection,) for connection in used[:-1]]


def test_a_call_that_the_network_layer_cancelled_is_tried_again() -> None:
    """A call that gRPC cancels by itself is a passing trouble, not the end of the batch."""
    bench = Bench(None)
    published = bench.publish()
    bench.calls[0].end_as_cancelled()
    bench.run_to(0.1)
    assert bench.sends == [(0, 0), (0.1, 0)]
    bench.calls[1].answer()
    bench.run_to(0.2)
    assert published.outcome.retries == 1


def test_a_success_of_a_hedge_calls_off_the_retry() -> None:
    """A batch that is published while its original waits to retry is not sent again."""
    bench = Bench(HedgingSettings(hedge_delay=0.5, initial_tokens=1), RetrySettings(initial_retry_delay=1))
    published = bench.publish()
    bench.at(0.4, bench.calls[0].refuse, UNAVAILABLE)
    bench.run_to(0.5)
    bench.at(1.4, bench.calls[1].answer)
    bench.run_to(10)
    assert bench.sends == [(0, 0), (0.5, 1)]
    assert (published.outcome.winner, published.outcome.retries, published.resolved_at) == (1, 0, 1.4)


class _LateClock(FakeClock):
    """A clock of a loop that is busy: it shows a later time than that of the timer that runs."""

    late = 0.0

    def time(self) -> float:
        return super().time() + self.late


def test_a_retry_that_a_busy_loop_runs_too_late_is_not_sent() -> None:
    """No try is sent without time left, even when the process was too busy to run its timer in time."""
    clock = _LateClock()
    retry = RetrySettings(initial_rpc_timeout=1, total_timeout=1, initial_retry_delay=0.2)
    bench = Bench(None, retry, clock=clock)
    published = bench.publish()
    bench.at(0.75, bench.calls[0].refuse, UNAVAILABLE)
    bench.run_to(0.8)
    clock.late = 0.5
    bench.clock.advance(0.2)
    assert [call.timeout for call in bench.calls if call.timeout <= 0] == []
    assert published.error.status is UNAVAILABLE
