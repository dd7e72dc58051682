"""Callers of a shared request who lose interest, and what is kept of the batches."""

from __future__ import annotations

import weakref

import grpc
import pytest

from beam_hedge import HedgingSettings, PublishError, RetrySettings
from beam_hedge.batch import seal
from tests.unit.dispatching import TOPIC, contents, dispatching

REFUSED = grpc.StatusCode.INVALID_ARGUMENT


def test_one_who_cancels_leaves_the_others() -> None:
    """A bundle that fails ends its own wait and no other bundle's."""
    with dispatching(None) as bench:
        bench.warm(1, 2, 3)
        futures = [bench.accept(thread) for thread in (1, 2, 3)]
        bench.run()
        assert futures[1].cancel()
        bench.run()
        assert bench.calls[0].out
        bench.answer(bench.calls[0])
        assert [futures[0].result(0).message_ids, futures[2].result(0).message_ids] == [("1",), ("3",)]
        assert futures[1].cancelled()
        assert len(bench.calls) == 1


def test_when_the_first_cancels_the_next_is_told_of_the_attempts() -> None:
    """Attempts are counted by somebody who still listens."""
    with dispatching(HedgingSettings(hedge_delay=1, initial_tokens=9)) as bench:
        bench.warm(1, 2, 3)
        futures = [bench.accept(thread) for thread in (1, 2, 3)]
        bench.run(1.5)
        futures[0].cancel()
        bench.run()
        bench.answer(bench.calls[1])
        second, third = futures[1].result(0), futures[2].result(0)
        assert (second.shared, second.hedges, second.winner, second.attempts) == (False, 1, 1, 2)
        assert (third.shared, third.hedges, third.winner, third.attempts) == (True, 0, 0, 1)


def test_the_last_to_cancel_ends_the_request() -> None:
    """When all have given up nothing goes on behind their backs, not even a retry."""
    with dispatching(HedgingSettings(hedge_delay=1, initial_tokens=9)) as bench:
        bench.warm(1, 2, 3)
        futures = [bench.accept(thread) for thread in (1, 2, 3)]
        bench.run(1.5)
        for future in futures:
            assert not bench.calls[0].cancelled()
            future.cancel()
            bench.run()
        bench.run(100)
        assert len(bench.calls) == 2
        assert all(call.cancelled() for call in bench.calls)


def test_one_who_has_cancelled_is_not_sent_again() -> None:
    """A refused request is split among those who still want to know; the others' messages stay unsent."""
    with dispatching(None) as bench:
        bench.warm(1, 2, 3)
        futures = [bench.accept(thread) for thread in (1, 2, 3)]
        bench.run()
        futures[0].cancel()
        bench.run()
        bench.calls[0].refuse(REFUSED)
        bench.run()
        # The permits of the one that has gone are back, those of the others go on with them.
        assert bench.flow.batches == 2
        assert [contents(call) for call in bench.calls[1:]] == [[b"2"], [b"3"]]
        for call in bench.calls[1:]:
            bench.answer(call)
        assert [futures[1].result(0).attempts, futures[2].result(0).attempts] == [2, 1]


def test_a_part_that_is_cancelled_ends_alone() -> None:
    """After a split each caller has a request of its own, which ends with its interest."""
    with dispatching(None) as bench:
        bench.warm(1, 2)
        futures = [bench.accept(thread) for thread in (1, 2)]
        bench.run()
        bench.calls[0].refuse(REFUSED)
        bench.run()
        futures[0].cancel()
        bench.run()
        assert [call.cancelled() for call in bench.calls[1:]] == [True, False]
        assert bench.flow.batches == 1
        bench.answer(bench.calls[2])
        assert futures[1].result(0).message_ids == ("2",)


def test_a_part_that_fails_again_is_told_of_all() -> None:
    """A batch that was refused with others and then alone has one error, with both refusals."""
    with dispatching(None) as bench:
        bench.warm(1, 2)
        futures = [bench.accept(thread) for thread in (1, 2)]
        bench.run()
        bench.calls[0].refuse(REFUSED, "all")
        bench.run()
        for call in bench.calls[1:]:
            call.refuse(REFUSED, "alone")
        bench.run(100)
        errors = [future.exception(0) for future in futures]
        assert [error.attempts for error in errors if isinstance(error, PublishError)] == [2, 1]
        assert [error.refusals for error in errors if isinstance(error, PublishError)] == [
            (REFUSED, REFUSED),
            (REFUSED,),
        ]
        assert len(bench.calls) == 3


def test_a_caller_s_callback_cancels_another_too_late() -> None:
    """Who waits for a request that is answered gets its ids, whatever another caller's callback tries."""
    with dispatching(None) as bench:
        bench.warm(1, 2, 3)
        futures = [bench.accept(thread) for thread in (1, 2, 3)]
        cancelled = []
        futures[0].add_done_callback(lambda _: cancelled.append(futures[1].cancel()))
        bench.run()
        bench.answer(bench.calls[0])
        assert cancelled == [False]
        assert [future.result(0).message_ids for future in futures] == [("1",), ("2",), ("3",)]


def test_a_callback_may_publish() -> None:
    """A batch that is published in a callback is sent, though the engine is about to look elsewhere."""
    with dispatching(None) as bench:
        bench.warm(1, 2)
        futures = [bench.accept(thread) for thread in (1, 2)]
        more = []
        futures[0].add_done_callback(lambda _: more.append(bench.accept(3, b"more")))
        bench.run()
        bench.answer(bench.calls[0])
        assert contents(bench.calls[1]) == [b"more"]
        bench.answer(bench.calls[1])
        assert more[0].result(0).message_ids == ("more",)


@pytest.mark.parametrize("end", ["answered", "failed", "cancelled", "split"])
def test_no_payload_outlives_the_outcome(end: str) -> None:
    """Callers keep futures for long; no batch stays in memory with them, though a loser is slow to end."""
    with dispatching(
        HedgingSettings(hedge_delay=1, initial_tokens=9), RetrySettings(initial_retry_delay=1)
    ) as bench:
        bench.warm(1, 2, 3)
        bench.network.cancel_delay = 30
        batches = [seal(TOPIC, [b"%d" % thread]) for thread in (1, 2, 3)]
        futures = [bench.accept_batch(thread, batch) for thread, batch in zip((1, 2, 3), batches, strict=True)]
        kept = [weakref.ref(batch) for batch in batches]
        del batches
        bench.run(1.5)
        assert all(ref() is not None for ref in kept)
        if end == "answered":
            bench.calls[1].answer()
        elif end == "failed":
            bench.calls[0].refuse(grpc.StatusCode.NOT_FOUND)
        elif end == "cancelled":
            assert all(future.cancel() for future in futures)
        else:
            bench.calls[0].refuse(REFUSED)
            bench.run()
            assert all(ref() is not None for ref in kept)
            for call in bench.calls[2:]:
                call.answer()
        bench.run()
        assert all(future.done() for future in futures)
        assert not all(call.ended_at for call in bench.calls)
        assert [ref() for ref in kept] == [None] * 3
        bench.run(40)


def test_a_cancelled_batch_is_dropped_before_it_is_sent() -> None:
    """What was given up while it waited leaves no payload behind."""
    with dispatching(None) as bench:
        batch = seal(TOPIC, [b"x"])
        kept = weakref.ref(batch)
        future = bench.accept_batch(1, batch)
        del batch
        future.cancel()
        bench.run()
        assert kept() is None
        assert not bench.calls
