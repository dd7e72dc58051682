"""What may come between two steps of a batch: Ctrl-C, a caller who cancels, the end of its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import pytest

from beam_hedge import RetrySettings
from tests.unit.dispatching import contents, dispatching

if TYPE_CHECKING:
    from tests.unit.dispatching import Dispatching

REFUSED = grpc.StatusCode.INVALID_ARGUMENT


def interrupt(bench: Dispatching, *, told: bool) -> None:
    """Publishes a batch, and Ctrl-C comes just before or just after the engine is told of it."""
    engine: Any = bench.engine
    submit = engine.submit

    def interrupted(*work: Any) -> None:
        engine.submit = submit
        if told:
            submit(*work)
        raise KeyboardInterrupt

    engine.submit = interrupted
    with pytest.raises(KeyboardInterrupt):
        bench.accept(1, b"interrupted")


@pytest.mark.parametrize("told", [True, False])
def test_ctrl_c_in_publish_gives_permits_back_once_and_sends_nothing(told: bool) -> None:
    """A batch whose publish() was interrupted is not sent, holds nothing, and hinders none that comes later."""
    with dispatching(None) as bench:
        interrupt(bench, told=told)
        later = [bench.accept(1, b"later"), bench.accept(2, b"later still")]
        bench.run()
        assert sorted(data for call in bench.calls for data in contents(call)) == [b"later", b"later still"]
        for call in list(bench.calls):
            bench.answer(call)
        assert [future.result(0).message_ids for future in later] == [("later",), ("later still",)]


def test_one_who_cancels_just_before_the_answer_is_not_told_of_the_attempts() -> None:
    """The attempts of a shared request are counted once, whoever loses interest at the last moment."""
    with dispatching(None) as bench:
        bench.warm(1, 2)
        futures = [bench.accept(1), bench.accept(2)]
        bench.run()
        bench.calls[0].answer("1", "2")
        futures[0].cancel()
        # The engine sees the answer first, and only then hears of the cancellation.
        bench.clock.run_ready()
        bench.run()
        outcome = futures[1].result(0)
        assert not outcome.shared
        assert outcome.message_ids == ("2",)


def test_one_who_cancels_just_before_a_refusal_is_not_sent_again() -> None:
    """A cancelled batch gets no request of its own when the one that it was in is split."""
    with dispatching(None) as bench:
        bench.warm(1, 2)
        futures = [bench.accept(1), bench.accept(2)]
        bench.run()
        bench.calls[0].refuse(REFUSED)
        futures[0].cancel()
        bench.clock.run_ready()
        bench.run()
        assert [contents(call) for call in bench.calls[1:]] == [[b"2"]]
        bench.answer(bench.calls[1])
        outcome = futures[1].result(0)
        assert (outcome.attempts, outcome.refusals) == (2, (REFUSED,))


def test_a_split_goes_on_with_what_is_left_of_the_total_timeout() -> None:
    """No batch takes longer than the total timeout because it was in a request with another that is refused."""
    retry = RetrySettings(total_timeout=10, initial_rpc_timeout=5, initial_retry_delay=0.1, max_retry_delay=0.1)
    with dispatching(None, retry) as bench:
        bench.warm(1, 2)
        began = bench.clock.time()
        futures = [bench.accept(1), bench.accept(2)]
        bench.run()
        while bench.clock.time() < began + 9:
            for call in bench.calls:
                if call.out:
                    call.refuse(grpc.StatusCode.UNAVAILABLE)
            bench.run(0.1)
        bench.run(0.5)
        [last] = [call for call in bench.calls if call.out]
        last.refuse(REFUSED)
        bench.run()
        again = [call for call in bench.calls if call.out]
        assert sorted(data for call in again for data in contents(call)) == [b"1", b"2"]
        assert {round(call.sent_at + call.timeout - began, 3) for call in again} == {10.0}
        for call in again:
            bench.answer(call)
        assert all(future.done() for future in futures)
