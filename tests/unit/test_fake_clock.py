"""FakeClock: virtual time with the ordering rules of an asyncio loop."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from beam_hedge.testing import FakeClock

if TYPE_CHECKING:
    from beam_hedge.testing import FakeHandle


def test_a_timer_runs_at_its_time_and_not_before() -> None:
    """Users can assert what has not happened one instant before a timer is due."""
    clock, seen = FakeClock(start=100.0), list[float]()
    clock.call_later(0.2, lambda: seen.append(clock.time()))
    clock.advance(0.199)
    assert seen == []
    clock.advance(0.001)
    assert seen == [pytest.approx(100.2)]
    assert clock.time() == pytest.approx(100.2)


def test_one_advance_runs_everything_due_in_order_of_time() -> None:
    """Users can jump far ahead and each callback still sees its own time."""
    clock, seen = FakeClock(), list[tuple[float, float]]()
    for when in (3.0, 1.0, 2.0):
        clock.call_at(when, lambda when=when: seen.append((when, clock.time())))
    clock.advance(10)
    assert seen == [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]
    assert clock.time() == 10


def test_equal_times_run_in_the_order_of_scheduling() -> None:
    """Users get the same run every time, ties included."""
    clock, seen = FakeClock(), list[int]()
    for number in range(20):
        clock.call_at(1.0, seen.append, number)
    clock.advance(1)
    assert seen == list(range(20))


def test_timers_that_a_timer_sets_run_in_the_same_advance() -> None:
    """Users can advance over a whole chain of hedges at once."""
    clock, seen = FakeClock(), list[float]()

    def tick() -> None:
        seen.append(clock.time())
        if len(seen) < 4:
            clock.call_later(0.5, tick)

    clock.call_later(0.5, tick)
    clock.advance(1.5)
    assert seen == [0.5, 1.0, 1.5]
    assert clock.pending() == 1


def test_a_turn_runs_only_what_was_ready_when_it_began() -> None:
    """Users see an answer and a timer of one turn in the order in which a real loop would run them."""

    def schedule(loop: FakeClock | asyncio.AbstractEventLoop, seen: list[str]) -> None:
        def first() -> None:
            seen.append("first")
            loop.call_soon(seen.append, "from first")
            loop.call_at(loop.time() - 1, seen.append, "late timer")

        loop.call_soon(first)
        loop.call_soon(seen.append, "second")

    clock, virtual = FakeClock(), list[str]()
    schedule(clock, virtual)
    clock.run_ready()

    real = list[str]()

    async def main() -> None:
        schedule(asyncio.get_running_loop(), real)
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(main())
    assert virtual == real == ["first", "second", "from first", "late timer"]


def test_run_ready_leaves_the_time_and_the_future_alone() -> None:
    """Users can let answers settle without any timer firing."""
    clock, seen = FakeClock(), list[str]()
    clock.call_soon(seen.append, "now")
    clock.call_later(0.001, seen.append, "later")
    clock.run_ready()
    assert seen == ["now"]
    assert clock.time() == 0
    assert clock.pending() == 1


def test_a_cancelled_handle_never_runs_and_holds_nothing() -> None:
    """Users can show that a cancelled hedge timer does not keep a payload alive."""

    class Payload:
        pass

    clock, payload = FakeClock(), Payload()
    alive = weakref.ref(payload)
    handles = [clock.call_later(1, id, payload), clock.call_soon(id, payload)]
    del payload
    for handle in handles:
        assert not handle.cancelled()
        handle.cancel()
        handle.cancel()
        assert handle.cancelled()
    gc.collect()
    assert alive() is None
    assert clock.pending() == 0
    clock.advance(2)


def test_a_callback_can_cancel_one_of_the_same_turn() -> None:
    """Users can rely on a winner cancelling its hedge timer when both are due at once."""
    clock, seen = FakeClock(), list[str]()
    handles: list[FakeHandle] = []

    def win() -> None:
        handles[0].cancel()

    clock.call_at(1, win)
    handles.append(clock.call_at(1, seen.append, "second"))
    clock.advance(1)
    assert seen == []


def test_sums_of_decimal_fractions_reach_their_timer() -> None:
    """Users can advance in steps of 0.1 without missing a timer by a rounding error."""
    clock, seen = FakeClock(), list[str]()
    clock.call_at(0.8, seen.append, "due")
    for _ in range(8):
        clock.advance(0.1)
    assert clock.time() < 0.8
    assert seen == ["due"]


def test_asyncio_futures_and_tasks_work_on_it() -> None:
    """Users can run coroutines in virtual time."""
    clock = FakeClock()
    future: asyncio.Future[str] = asyncio.Future(loop=clock)  # type: ignore[arg-type]

    async def wait() -> str:
        return await future + "!"

    task = asyncio.Task(wait(), loop=clock)  # type: ignore[arg-type]
    clock.call_later(5, future.set_result, "done")
    clock.advance(4)
    assert not task.done()
    clock.advance(1)
    assert task.result() == "done!"


def test_an_exception_that_nobody_retrieves_is_kept() -> None:
    """Users find the errors that an asyncio loop would only log."""
    clock = FakeClock()
    future: asyncio.Future[None] = asyncio.Future(loop=clock)  # type: ignore[arg-type]
    future.set_exception(ValueError("lost"))
    del future
    gc.collect()
    (context,) = clock.unhandled
    assert isinstance(context["exception"], ValueError)


def test_an_exception_of_a_callback_reaches_the_test_and_the_rest_still_runs() -> None:
    """Users never have a failing callback pass unseen."""
    clock, seen = FakeClock(), list[str]()

    def fail() -> None:
        raise ValueError("broken")

    clock.call_at(1, fail)
    clock.call_at(1, seen.append, "after")
    with pytest.raises(ValueError, match="broken"):
        clock.advance(2)
    clock.advance(0)
    assert seen == ["after"]
    assert clock.time() == 1


def test_a_callback_that_reschedules_itself_for_ever_is_an_error() -> None:
    """Users get an error, not a hang, from a busy loop."""
    clock = FakeClock()

    def again() -> None:
        clock.call_soon(again)

    again()
    with pytest.raises(RuntimeError, match="reschedules itself"):
        clock.run_ready()


@pytest.mark.parametrize("seconds", [-0.1, float("nan"), float("inf")])
def test_time_moves_forward_only(seconds: float) -> None:
    """Users cannot move time backwards by mistake."""
    clock = FakeClock()
    with pytest.raises(ValueError, match="forward"):
        clock.advance(seconds)


def test_a_timer_needs_a_number() -> None:
    """Users are told about a NaN instead of waiting for a timer that never fires."""
    with pytest.raises(ValueError, match="NaN"):
        FakeClock().call_at(float("nan"), print)


def test_callbacks_run_in_the_context_of_their_scheduling() -> None:
    """Users keep their context variables, as with a real loop."""
    variable = contextvars.ContextVar("variable", default="outside")
    clock, seen = FakeClock(), list[str]()
    token = variable.set("inside")
    clock.call_soon(lambda: seen.append(variable.get()))
    variable.reset(token)
    clock.run_ready()
    assert seen == ["inside"]


def test_its_repr_says_the_time_and_the_work() -> None:
    """Users see the state of the clock in a failing assertion."""
    clock = FakeClock(start=1.5)
    handle = clock.call_later(1, print)
    assert repr(clock) == "<FakeClock time=1.5 pending=1>"
    assert repr(handle) == "<FakeHandle when=2.5 waiting>"
