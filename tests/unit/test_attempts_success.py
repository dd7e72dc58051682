"""Rule 3: the first success is the outcome, the others are cancelled, the bucket gains its refill once."""

from __future__ import annotations

import grpc
import pytest

from beam_hedge.settings import HedgingSettings, RetrySettings
from tests.unit.bench import Bench

HEDGED = HedgingSettings(hedge_delay=1, initial_tokens=9)


def test_the_outcome_is_set_at_once_while_losers_are_still_ending() -> None:
    """A caller has the answer when it comes, not when the cancelled attempts have ended."""
    bench = Bench(HEDGED)
    bench.network.cancel_delay = 0.7
    published = bench.publish()
    bench.at(1.5, lambda: bench.calls[1].answer("from hedge"))
    bench.run_to(1.5)
    assert (published.resolved_at, published.outcome.message_ids) == (1.5, ("from hedge",))
    assert published.ended == []


def test_all_other_attempts_are_cancelled_at_the_outcome() -> None:
    """A published batch leaves no request running at the service."""
    bench = Bench(HEDGED)
    published = bench.publish()
    bench.run_to(3)
    bench.at(3.25, bench.calls[2].answer)
    bench.run_to(20)
    assert [call.cancelled_at for call in bench.calls] == [3.25, 3.25, None, 3.25]
    assert bench.sends == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert (published.outcome.winner, published.outcome.attempts_cancelled) == (2, 3)


@pytest.mark.parametrize("winner", [0, 1])
def test_either_attempt_can_win(winner: int) -> None:
    """The ids are those of whichever attempt was answered first."""
    bench = Bench(HEDGED)
    published = bench.publish()
    bench.at(1.4, lambda: bench.calls[winner].answer(f"id of {winner}"))
    bench.run_to(1.4)
    assert published.outcome.message_ids == (f"id of {winner}",)
    assert published.outcome.winner == winner


def test_a_success_adds_one_refill() -> None:
    """Each published batch pays for a part of a hedge, whoever won."""
    bench = Bench(HedgingSettings(hedge_delay=1, initial_tokens=2, refill_ratio=0.15))
    bench.publish()
    bench.calls[0].answer()
    bench.run_to(0)
    assert bench.bucket.milli_tokens == 2150
    bench.publish()
    bench.run_to(1)
    bench.calls[2].answer()
    bench.run_to(2)
    assert bench.bucket.milli_tokens == 2150 - 1000 + 150


def test_two_successes_in_one_turn_are_one_outcome_and_one_refill() -> None:
    """Two attempts that are answered together publish the batch once."""
    bench = Bench(HEDGED)
    published = bench.publish()
    bench.run_to(1)
    bench.calls[1].answer("hedge")
    bench.calls[0].answer("original")
    bench.run_to(5)
    assert published.outcome.message_ids == ("hedge",)
    assert bench.bucket.milli_tokens == 8100
    assert len(published.ended) == 1


def test_a_loser_that_succeeds_while_it_is_cancelled_changes_nothing() -> None:
    """A late second answer is no second outcome and no second refill."""
    bench = Bench(HEDGED)
    bench.network.cancel_delay = 0.5
    published = bench.publish()
    bench.run_to(1)
    bench.calls[1].answer("hedge")
    bench.run_to(1.2)
    bench.calls[0].answer("original")
    bench.run_to(5)
    assert published.outcome.message_ids == ("hedge",)
    assert bench.bucket.milli_tokens == 8100
    assert [round(at, 6) for at in published.ended] == [1.2]


def test_a_loser_that_fails_finally_while_it_is_cancelled_changes_nothing() -> None:
    """An error that comes after the success is nobody's business."""
    bench = Bench(HEDGED)
    bench.network.cancel_delay = 0.5
    published = bench.publish()
    bench.run_to(1)
    bench.calls[1].answer()
    bench.run_to(1.2)
    bench.calls[0].refuse(grpc.StatusCode.UNAVAILABLE)
    bench.run_to(30)
    assert published.outcome.winner == 1
    assert bench.sends == [(0, 0), (1, 1)]


@pytest.mark.parametrize("first", ["error", "success"])
@pytest.mark.parametrize(
    "status", [grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNAVAILABLE], ids=lambda code: code.name
)
def test_of_a_success_and_an_error_in_one_turn_the_success_wins(status: grpc.StatusCode, first: str) -> None:
    """A batch that the service has is not reported as failed because the other answer was seen first."""
    bench = Bench(HEDGED, RetrySettings(total_timeout=1.55, initial_rpc_timeout=1.54))
    published = bench.publish()
    bench.run_to(1.5)
    if first == "error":
        bench.calls[0].refuse(status)
    bench.calls[1].answer("stored")
    bench.calls[0].refuse(status)
    bench.run_to(1.5)
    assert (published.outcome.message_ids, published.resolved_at) == (("stored",), 1.5)
    bench.run_to(30)
    assert len(bench.calls) == 2
    assert bench.bucket.milli_tokens == 8100


@pytest.mark.parametrize("turns", range(4))
def test_a_success_that_is_on_its_way_through_the_loop_beats_a_final_error(turns: int) -> None:
    """A success that the process has received wins, though the loop passes it on some turns later."""
    bench = Bench(HEDGED)
    published = bench.publish()
    bench.run_to(1.5)

    def receive(turns_left: int) -> None:
        if turns_left:
            bench.clock.call_soon(receive, turns_left - 1)
        else:
            bench.calls[1].answer()

    bench.calls[0].refuse(grpc.StatusCode.NOT_FOUND)
    bench.clock.call_soon(receive, turns)
    bench.run_to(1.5)
    assert published.outcome.winner == 1


def test_nobody_waits_when_no_loser_is_out() -> None:
    """Flow control gets its permits back with the answer when there was only one attempt."""
    bench = Bench(HEDGED)
    published = bench.publish()
    bench.at(0.25, bench.calls[0].answer)
    bench.run_to(0.25)
    assert published.ended == [0.25]
    assert bench.clock.pending() == 0


@pytest.mark.parametrize(("cancel_delay", "ended"), [(0.3, 1.8), (0.999, 2.499), (1.0, 2.5), (8.0, 2.5)])
def test_losers_are_awaited_for_one_second_at_most(cancel_delay: float, ended: float) -> None:
    """Permits come back when the last loser has ended, or after a second if one hangs."""
    bench = Bench(HEDGED)
    bench.network.cancel_delay = cancel_delay
    published = bench.publish()
    bench.run_to(1.5)
    bench.calls[0].answer()
    bench.run_to(ended - 0.001)
    assert published.ended == []
    bench.run_to(60)
    assert published.ended == [pytest.approx(ended)]


def test_the_last_of_several_losers_ends_the_batch() -> None:
    """Permits come back when all losers have ended, not with the first."""
    bench = Bench(HEDGED)
    bench.network.cancel_delay = 0.9
    published = bench.publish()
    bench.run_to(3)
    bench.calls[0].answer()
    bench.at(3.2, bench.calls[1].end_as_cancelled)
    bench.at(3.4, bench.calls[2].refuse, grpc.StatusCode.UNAVAILABLE)
    bench.at(3.6, bench.calls[3].end_as_cancelled)
    bench.run_to(3.599)
    assert published.ended == []
    bench.run_to(10)
    assert published.ended == [pytest.approx(3.6)]
    assert bench.clock.pending() == 0


def test_no_hedge_is_sent_after_the_outcome() -> None:
    """A published batch is never sent again: its timers are gone."""
    bench = Bench(HEDGED)
    bench.publish()
    bench.at(0.999, bench.calls[0].answer)
    bench.run_to(0.999)
    assert bench.clock.pending() == 0
    bench.run_to(30)
    assert bench.sends == [(0, 0)]
    assert bench.bucket.milli_tokens == 9100
