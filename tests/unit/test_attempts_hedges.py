"""Rules 2 and 5: when hedges are sent, what they cost and how long they may take."""

from __future__ import annotations

import grpc
import pytest

from beam_hedge.settings import HedgingSettings, RetrySettings
from tests.unit.bench import Bench


def test_hedges_follow_each_other_by_the_hedge_delay() -> None:
    """Nothing happens just before the hedge delay, one hedge at it, and so on from hedge to hedge."""
    bench = Bench(HedgingSettings(hedge_delay=0.2, initial_tokens=3))
    bench.publish()
    timeline = []
    for milliseconds in (199, 200, 399, 400, 599, 600, 800, 5000):
        bench.run_to(milliseconds / 1000)
        timeline.append((milliseconds, len(bench.calls)))
    assert timeline == [(199, 1), (200, 2), (399, 2), (400, 3), (599, 3), (600, 4), (800, 4), (5000, 4)]
    assert bench.sends == [(0, 0), (0.2, 1), (0.4, 2), (0.6, 3)]


def test_a_hedge_takes_one_token() -> None:
    """Each hedge costs exactly one token, taken when it is sent."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=5))
    bench.publish()
    bench.run_to(0.999)
    assert bench.bucket.milli_tokens == 5000
    bench.run_to(1)
    assert bench.bucket.milli_tokens == 4000
    bench.run_to(2)
    assert bench.bucket.milli_tokens == 3000


def test_all_attempts_send_the_same_bytes_and_tell_their_number_and_one_start_time() -> None:
    """The server can tell hedges from retries, and cannot get two versions of a batch."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=9))
    published = bench.publish(request=b"\x0a\x03abc")
    bench.at(0.5, bench.calls[0].refuse, grpc.StatusCode.UNAVAILABLE)
    bench.run_to(3)
    assert bench.sends == [(0, 0), (0.6, 0), (1, 1), (2, 2), (3, 3)]
    assert len({id(call.request) for call in bench.calls}) == 1
    assert {call.start_time_ns for call in bench.calls} == {published.start_time_ns}


def test_without_settings_nothing_is_hedged() -> None:
    """`settings=None` never sends a second copy of a request that is out."""
    bench = Bench(None)
    published = bench.publish()
    bench.run_to(59)
    bench.calls[0].answer()
    bench.run_to(60)
    assert bench.sends == [(0, 0)]
    assert (published.outcome.hedges, published.outcome.hedges_throttled) == (0, 0)


def test_the_hedge_clock_ignores_retries() -> None:
    """Hedges come at the same times whether the original is out, waiting to retry or out again."""
    bench = Bench(
        HedgingSettings(hedge_delay=1, initial_tokens=9),
        RetrySettings(initial_retry_delay=2.5, retry_delay_multiplier=1),
    )
    bench.publish()
    bench.at(0.3, bench.calls[0].refuse, grpc.StatusCode.UNAVAILABLE)
    bench.run_to(4)
    assert bench.sends == [(0, 0), (1, 1), (2, 2), (2.8, 0), (3, 3), (4, 4)]


def test_hedges_go_on_when_the_last_hedge_has_failed() -> None:
    """A hedge that was refused does not stop the next."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=9))
    bench.publish()
    bench.run_to(1)
    bench.calls[1].refuse(grpc.StatusCode.PERMISSION_DENIED)
    bench.run_to(2)
    assert bench.sends == [(0, 0), (1, 1), (2, 2)]


def test_the_chain_stops_for_good_when_a_due_hedge_finds_no_token() -> None:
    """A batch that was throttled once is not hedged later, when other batches have filled the bucket."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=1, refill_ratio=0.2))
    slow = bench.publish()
    bench.run_to(2)
    for _ in range(10):
        bench.publish()
        bench.calls[-1].answer()
        bench.run_to(2)
    assert bench.bucket.milli_tokens == 2000
    bench.run_to(30)
    assert [call.hedge for call in bench.calls if call.start_time_ns == slow.start_time_ns] == [0, 1]
    assert bench.bucket.milli_tokens == 2000
    bench.calls[0].answer()
    bench.run_to(31)
    assert (slow.outcome.hedges, slow.outcome.hedges_throttled) == (1, 1)


@pytest.mark.parametrize(("milli_tokens", "hedges"), [(999, 0), (1000, 1), (1999, 1)])
def test_a_hedge_needs_a_whole_token(milli_tokens: int, hedges: int) -> None:
    """Part of a token buys nothing."""
    bench = Bench(HedgingSettings(hedge_delay=1))
    bench.bucket.milli_tokens = milli_tokens
    bench.publish()
    bench.run_to(10)
    assert len(bench.calls) == 1 + hedges
    assert bench.bucket.milli_tokens == milli_tokens - 1000 * hedges


@pytest.mark.parametrize("turns", range(4))
@pytest.mark.parametrize("first", ["answer", "timer"])
def test_an_answer_that_is_there_when_the_timer_fires_wins(turns: int, first: str) -> None:
    """An answer that the process has received saves the hedge, though the loop has yet to see it."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=5))

    def receive(turns_left: int) -> None:
        if turns_left:
            bench.clock.call_soon(receive, turns_left - 1)
        else:
            bench.calls[0].answer()

    if first == "answer":
        bench.at(1, receive, turns)
    published = bench.publish()
    if first == "timer":
        bench.at(1, receive, turns)
    bench.run_to(10)
    assert bench.sends == [(0, 0)]
    assert bench.bucket.milli_tokens == 5100
    assert (published.resolved_at, published.outcome.hedges, published.outcome.hedges_throttled) == (1, 0, 0)


def test_an_answer_that_is_there_when_the_timer_fires_is_not_throttled() -> None:
    """A batch that needed no hedge is not counted as one that was refused a token."""
    bench = Bench(HedgingSettings(hedge_delay=1))
    published = bench.publish()
    bench.at(1, bench.calls[0].answer)
    bench.run_to(3)
    assert published.outcome.hedges_throttled == 0


def test_no_token_is_spent_when_nothing_is_left_of_the_total_timeout() -> None:
    """A hedge that could not live is not paid for."""
    bench = Bench(
        HedgingSettings(hedge_delay=1, initial_tokens=9), RetrySettings(initial_rpc_timeout=2, total_timeout=3)
    )
    published = bench.publish()
    bench.run_to(20)
    assert [hedge for _, hedge in bench.sends if hedge] == [1, 2]
    assert bench.bucket.milli_tokens == 7000
    assert published.resolved_at == 3


def test_no_token_is_spent_after_the_total_timeout_when_the_original_ends_late() -> None:
    """A hedge is not sent without time left, even if gRPC tells of the original's deadline too late."""
    bench = Bench(
        HedgingSettings(hedge_delay=1, initial_tokens=9), RetrySettings(initial_rpc_timeout=2, total_timeout=2)
    )
    bench.network.keeps_deadlines = False
    bench.publish()
    bench.run_to(4)
    assert bench.sends == [(0, 0), (1, 1)]
    assert bench.bucket.milli_tokens == 8000


def test_no_hedge_is_sent_while_a_final_error_is_being_settled() -> None:
    """A batch that has failed finally spends no token, even if its timer is due in the same turn."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=9))
    bench.at(1, lambda: bench.calls[0].refuse(grpc.StatusCode.NOT_FOUND))
    published = bench.publish()
    bench.run_to(5)
    assert bench.sends == [(0, 0)]
    assert bench.bucket.milli_tokens == 9000
    assert published.error.hedges == 0


def test_a_hedge_may_take_ten_seconds_at_most() -> None:
    """A hedge's deadline is 10 s when the batch has more time than that."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=2))
    bench.publish()
    bench.run_to(30)
    assert [(call.timeout, call.ended_at) for call in bench.calls[1:]] == [(10, 11), (10, 12)]


def test_a_hedge_may_take_what_is_left_of_the_total_timeout() -> None:
    """A hedge never outlives the batch's total timeout."""
    bench = Bench(
        HedgingSettings(hedge_delay=2, initial_tokens=9),
        RetrySettings(initial_rpc_timeout=14, total_timeout=14),
    )
    bench.publish()
    bench.run_to(13)
    assert [(call.sent_at, call.timeout) for call in bench.calls[1:]] == [
        (2, 10),
        (4, 10),
        (6, 8),
        (8, 6),
        (10, 4),
        (12, 2),
    ]


def test_a_hedge_may_outlive_the_rpc_timeout_of_the_original() -> None:
    """A short RPC timeout bounds tries of the original only."""
    bench = Bench(
        HedgingSettings(hedge_delay=1, initial_tokens=1),
        RetrySettings(initial_rpc_timeout=1.5, total_timeout=60),
    )
    published = bench.publish()
    bench.run_to(1)
    assert bench.calls[1].timeout == 10
    bench.at(8, bench.calls[1].answer)
    bench.run_to(8)
    assert published.outcome.winner == 1


def test_a_hedge_keeps_off_the_connections_of_its_batchs_live_attempts() -> None:
    """A connection that stalls holds one attempt of a batch, not all of them."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=9), connections=4)
    bench.publish()
    bench.run_to(3)
    assert sorted(call.connection for call in bench.calls) == [0, 1, 2, 3]
    bench.run_to(4)
    assert sorted(bench.calls[4].avoid) == [0, 1, 2, 3]


def test_a_hedge_can_take_the_connection_of_an_attempt_that_has_ended() -> None:
    """Only live attempts are kept off: with one that was refused, its connection is free again."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=9), RetrySettings(initial_retry_delay=50))
    bench.publish()
    bench.run_to(1)
    first = bench.calls[0].connection
    bench.calls[0].refuse(grpc.StatusCode.UNAVAILABLE)
    bench.run_to(2)
    assert bench.calls[2].connection == first


def test_batches_share_the_bucket() -> None:
    """All batches of a publisher draw on one budget, first come, first served."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=2))
    batches = [bench.publish() for _ in range(5)]
    bench.run_to(5)
    hedged = [call.start_time_ns for call in bench.calls if call.hedge]
    assert hedged == [batches[0].start_time_ns, batches[1].start_time_ns]
