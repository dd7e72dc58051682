"""What the callers of a shared request are told, whatever becomes of its attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge import HedgingSettings, PublishError, PublishOutcome, RetrySettings
from tests.unit.dispatching import contents, dispatching

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tests.unit.dispatching import Dispatching

HEDGED = HedgingSettings(hedge_delay=1, initial_tokens=50)
RETRY = RetrySettings(initial_retry_delay=0.1)
REFUSED = grpc.StatusCode.INVALID_ARGUMENT
COUNTS = ("hedges", "retries", "hedges_failed", "hedges_throttled", "attempts_cancelled")


def together(bench: Dispatching, threads: int) -> list[Future[PublishOutcome]]:
    """Has so many threads share a request; thread 2 has two messages, thread 3 has three."""
    bench.warm(*range(1, threads + 1))
    futures = [bench.accept(n, *(b"%d-%d" % (n, part) for part in range(n))) for n in range(1, threads + 1)]
    bench.run()
    assert len(bench.calls) == 1
    return futures


def told(futures: list[Future[PublishOutcome]]) -> list[PublishOutcome | PublishError]:
    """Returns what each caller was told."""
    results: list[PublishOutcome | PublishError] = []
    for future in futures:
        error = future.exception(0)
        assert error is None or isinstance(error, PublishError)
        results.append(error or future.result(0))
    return results


def sums(results: list[PublishOutcome | PublishError]) -> dict[str, int]:
    """Returns the sums of what is counted."""
    return {name: sum(getattr(result, name) for result in results) for name in COUNTS}


def attempts(results: list[PublishOutcome | PublishError]) -> int:
    """Returns how many attempts there were, as the sink counts them."""
    return sum(result.attempts for result in results if not result.shared)


def test_hedges_and_retries_are_told_once() -> None:
    """Sums over outcomes are what the service saw: a retry, a failed hedge, a winner, one cut short."""
    with dispatching(HEDGED, RETRY) as bench:
        futures = together(bench, 3)
        tokens = bench.bucket.milli_tokens
        bench.calls[0].refuse(grpc.StatusCode.UNAVAILABLE)
        bench.run(2.5)
        original, retry, first, second = bench.calls
        assert [call.hedge for call in bench.calls] == [0, 0, 1, 2]
        first.refuse(grpc.StatusCode.ABORTED)
        bench.run()
        bench.answer(second)
        results = told(futures)
        assert sums(results) == {
            "hedges": 2,
            "retries": 1,
            "hedges_failed": 1,
            "hedges_throttled": 0,
            "attempts_cancelled": 1,
        }
        assert attempts(results) == 4
        refusals = [status for result in results for status in result.refusals]
        assert refusals == [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED]
        outcomes = [future.result(0) for future in futures]
        assert [outcome.winner for outcome in outcomes] == [2, 0, 0]
        assert [outcome.messages for outcome in outcomes] == [1, 2, 3]
        ids = [outcome.message_ids for outcome in outcomes]
        assert ids == [("1-0",), ("2-0", "2-1"), ("3-0", "3-1", "3-2")]
        assert sum(outcome.request_bytes for outcome in outcomes) == len(original.request)
        assert {call.request for call in bench.calls} == {original.request}
        assert retry.cancelled()
        # Two hedges, and one refill for one request.
        assert bench.bucket.milli_tokens == tokens - 2000 + 100


def test_a_throttled_hedge_is_told_once() -> None:
    """One log line and one count for one request that found no token, however many callers it had."""
    with dispatching(HedgingSettings(hedge_delay=1, initial_tokens=0)) as bench:
        futures = together(bench, 3)
        bench.run(1.5)
        bench.answer(bench.calls[0])
        assert [result.hedges_throttled for result in told(futures)] == [1, 0, 0]


def test_each_latency_counts_from_its_own_acceptance() -> None:
    """A bundle that came later has waited less, whoever it shares with."""
    with dispatching(None) as bench:
        bench.warm(1, 2)
        first, second = bench.accept(1), bench.accept(2)
        accepted = [each.at for each in bench.dispatcher._waiting]
        bench.run(5)
        bench.answer(bench.calls[0])
        ended = bench.clock.time()
        latencies = [first.result(0).latency, second.result(0).latency]
        assert latencies == pytest.approx([ended - at for at in accepted], abs=1e-6)
        assert latencies[0] > latencies[1]


@pytest.mark.parametrize("culprit", [1, 2, 3])
def test_a_refused_request_is_split_once(culprit: int) -> None:
    """Only the caller of the bad message gets an error; each message is sent once more, and no oftener."""
    bad = b"%d-0" % culprit
    with dispatching(None) as bench:
        futures = together(bench, 3)
        bench.calls[0].refuse(REFUSED, "bad")
        bench.run()
        first, *parts = bench.calls
        assert [contents(call) for call in parts] == [
            [b"1-0"],
            [b"2-0", b"2-1"],
            [b"3-0", b"3-1", b"3-2"],
        ]
        assert contents(first) == [data for call in parts for data in contents(call)]
        for call in parts:
            if bad in contents(call):
                call.refuse(REFUSED, "this one")
            else:
                bench.answer(call)
        bench.run()
        results = told(futures)
        assert len(bench.calls) == 4
        error = results.pop(culprit - 1)
        assert isinstance(error, PublishError)
        assert (error.status, error.details, error.messages) == (REFUSED, "this one", culprit)
        assert [len(result.message_ids) for result in results if isinstance(result, PublishOutcome)] == [
            n for n in (1, 2, 3) if n != culprit
        ]
        # The request that all were in, and one for each: nobody's is counted twice.
        assert attempts([*results, error]) == 4
        assert not any(result.shared for result in [*results, error])
        refusals = [status for result in [*results, error] for status in result.refusals]
        assert refusals == [REFUSED, REFUSED]


def test_hedges_of_a_refused_request_are_counted_with_those_of_its_parts() -> None:
    """After a split, too, every attempt that the service saw is in exactly one caller's outcome."""
    with dispatching(HEDGED) as bench:
        futures = together(bench, 2)
        bench.run(1.5)
        original, hedge = bench.calls
        original.refuse(REFUSED, "bad")
        bench.run()
        assert hedge.cancelled()
        bench.run(1)
        assert [call.hedge for call in bench.calls] == [0, 1, 0, 0, 1, 1]
        for call in bench.calls[4:]:
            bench.answer(call)
        results = told(futures)
        assert attempts(results) == 6
        assert sums(results) == {
            "hedges": 3,
            "retries": 1,
            "hedges_failed": 0,
            "hedges_throttled": 0,
            "attempts_cancelled": 3,
        }
        assert all(result.attempts == 1 + result.retries + result.hedges for result in results)


def test_parts_of_a_refused_request_take_no_company() -> None:
    """What is refused once more can be blamed on nobody else, though others wait at that moment."""
    with dispatching(None) as bench:
        bench.warm(9)
        together(bench, 2)
        bench.accept(9)
        bench.calls[0].refuse(REFUSED, "bad")
        bench.run()
        assert [contents(call) for call in bench.calls[1:]] == [[b"9"], [b"1-0"], [b"2-0", b"2-1"]]
        for call in bench.calls[1:]:
            bench.answer(call)


@pytest.mark.parametrize(
    "status",
    [grpc.StatusCode.NOT_FOUND, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED],
)
def test_what_is_of_the_topic_is_told_to_all(status: grpc.StatusCode) -> None:
    """A missing topic costs one request, not one for each caller, and each error is of its caller's batch."""
    with dispatching(None) as bench:
        futures = together(bench, 3)
        bench.calls[0].refuse(status, "no")
        bench.run()
        results = told(futures)
        assert [(result.messages, result.shared) for result in results] == [(1, False), (2, True), (3, True)]
        assert {result.status for result in results if isinstance(result, PublishError)} == {status}
        assert len({id(result) for result in results}) == 3
        assert attempts(results) == len(bench.calls) == 1


def test_an_outage_that_outlasts_the_retries_is_told_to_all() -> None:
    """When the service does not recover, no caller's messages are tried for a second total timeout."""
    with dispatching(None, RetrySettings(total_timeout=10, initial_rpc_timeout=5)) as bench:
        futures = together(bench, 3)
        for _ in range(100):
            for call in bench.calls:
                call.refuse(grpc.StatusCode.UNAVAILABLE, "down")
            bench.run(0.2)
        results = told(futures)
        assert all(isinstance(result, PublishError) for result in results)
        assert attempts(results) == len(bench.calls) > 2
        assert sums(results)["retries"] == len(bench.calls) - 1


@pytest.mark.parametrize("ids", [0, 5, 7])
def test_a_wrong_number_of_ids_is_told_to_all(ids: int) -> None:
    """The service has stored something, nobody knows what: nothing is sent again, and nobody gets an id."""
    with dispatching(None) as bench:
        futures = together(bench, 3)
        bench.calls[0].answer_ids(ids)
        bench.run(100)
        results = told(futures)
        assert all(isinstance(result, PublishError) for result in results)
        assert {result.status for result in results if isinstance(result, PublishError)} == {
            grpc.StatusCode.INTERNAL
        }
        assert len(bench.calls) == 1
