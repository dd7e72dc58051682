"""Flow control with callers that wait: their order, and every way in which the wait ends."""

from __future__ import annotations

import threading

import pytest

from beam_hedge.errors import EngineDiedError, PublisherClosedError, WrongThreadError
from tests.unit.waiting import SECONDS, Caller, Line, controller

IDLE = "<FlowController 0 batches, 0 messages, 0 B out>"


def test_a_batch_that_does_not_fit_waits_until_it_does() -> None:
    """The runner is held back while too much is out, and goes on when enough has come back."""
    flow = controller()
    flow.take(4, 1)
    flow.take(5, 1)
    line = Line(flow)
    caller = line.join(6)
    assert line.waiting == [6]
    flow.give(5, 1)
    assert line.waiting == []
    assert caller.join().error is None
    assert repr(flow) == "<FlowController 2 batches, 10 messages, 2 B out>"


def test_those_who_wait_are_admitted_in_their_order() -> None:
    """No bundle waits for ever because others come after it."""
    flow = controller()
    flow.take(10, 1)
    line = Line(flow)
    for messages in (10, 9, 8, 7):
        line.join(messages)
    for messages, caller in zip((10, 10, 9, 8), line.callers, strict=True):
        before = line.waiting
        flow.give(messages, 1)
        assert caller.join().error is None
        assert line.waiting == before[1:]
        assert all(later.waits for later in line.callers[line.callers.index(caller) + 1 :])


def test_one_release_admits_all_who_now_fit() -> None:
    """A large batch that comes back lets several small ones go at once."""
    flow = controller()
    flow.take(10, 1)
    line = Line(flow)
    for messages in (3, 4, 3, 1):
        line.join(messages)
    flow.give(10, 1)
    assert line.waiting == [1]
    for caller in line.callers[:3]:
        assert caller.join().error is None
    flow.give(3, 1)
    assert line.callers[3].join().error is None


def test_a_small_batch_does_not_overtake_a_large_one_that_waits() -> None:
    """A large batch gets its turn, though smaller ones that come later would fit."""
    flow = controller()
    flow.take(5, 1)
    line = Line(flow)
    large, small = line.join(8), line.join(1)
    with pytest.raises(WrongThreadError):
        flow.take(1, 1, may_wait=False)
    flow.give(5, 1)
    assert large.join().error is None
    assert small.join().error is None


def test_a_batch_over_a_whole_limit_waits_until_nothing_is_out() -> None:
    """A batch larger than the limits waits for its turn, goes alone, and the rest goes on after it."""
    flow = controller()
    flow.take(1, 1)
    flow.take(1, 1)
    line = Line(flow)
    large, next_one = line.join(500, 50_000), line.join(1)
    flow.give(1, 1)
    assert line.waiting == [500, 1]
    flow.give(1, 1)
    assert large.join().error is None
    assert next_one.waits
    assert line.waiting == [1]
    flow.give(500, 50_000)
    assert next_one.join().error is None


@pytest.mark.parametrize("abandon", [False, True])
def test_those_who_wait_when_it_closes_get_the_error(*, abandon: bool) -> None:
    """No bundle waits for ever for a publisher that is closed or whose engine has died."""
    flow = controller()
    flow.take(10, 1)
    line = Line(flow)
    for _ in range(3):
        line.join(1)
    flow.close(EngineDiedError if abandon else PublisherClosedError, abandon=abandon)
    errors = [caller.join().error for caller in line.callers]
    assert [type(error) for error in errors] == [EngineDiedError if abandon else PublisherClosedError] * 3
    # One error in several threads would collect the tracebacks of all.
    assert len(set(map(id, errors))) == 3
    assert flow.batches == (0 if abandon else 1)


def test_a_caller_who_is_interrupted_takes_nothing() -> None:
    """A worker that is told to stop while it waits leaves the permits to others."""
    flow = controller()
    flow.take(6, 1)
    line = Line(flow)
    line.interrupt(5, lambda: None)
    assert line.waiting == []
    flow.take(4, 1, may_wait=False)
    flow.give(6, 1)
    flow.give(4, 1)
    assert repr(flow) == IDLE


def test_those_behind_a_caller_who_is_interrupted_go_if_they_fit() -> None:
    """A small batch that only a large one kept from going goes when that one gives up."""
    flow = controller()
    flow.take(6, 1)
    line = Line(flow)
    line.interrupt(5, lambda: (line.join(3), line.join(2)))
    small, too_large = line.callers
    assert small.join().error is None
    assert line.waiting == [2]
    flow.give(6, 1)
    assert too_large.join().error is None


def test_a_caller_who_is_interrupted_gives_back_what_it_got_in_that_moment() -> None:
    """Permits that come together with the signal are not lost, and the next in line gets them."""
    flow = controller()
    flow.take(10, 1)
    line = Line(flow)

    def one_more_comes_and_both_may_go() -> None:
        line.join(10)
        flow.give(10, 1)

    line.interrupt(5, one_more_comes_and_both_may_go)
    (behind,) = line.callers
    assert behind.join().error is None
    flow.give(10, 1)
    assert repr(flow) == IDLE


def test_a_caller_who_is_interrupted_and_refused_gives_nothing_back() -> None:
    """A signal that comes together with the close does not give back what was never taken."""
    flow = controller()
    flow.take(6, 6)
    Line(flow).interrupt(5, lambda: flow.close(PublisherClosedError))
    assert repr(flow) == "<FlowController 1 batches, 6 messages, 6 B out>"


def test_waiting_for_idle_includes_those_who_wait_for_permits() -> None:
    """A drain ends when all that was accepted, or waited to be, has come back."""
    flow = controller()
    flow.take(10, 1)
    line = Line(flow)
    caller = line.join(7)
    drain = Caller(lambda: flow.wait_idle(SECONDS))
    flow.give(10, 1)
    assert caller.join().error is None
    assert not flow.wait_idle(0)
    assert drain.waits
    flow.give(7, 1)
    assert drain.join().result is True


def test_many_threads_never_have_more_out_than_the_limit() -> None:
    """However many bundles publish at once, the limit holds, and all of them come through."""
    flow = controller(messages=3, size=100)
    lock = threading.Lock()
    out = most = 0

    def publish_often() -> None:
        nonlocal out, most
        for _ in range(50):
            flow.take(1, 1)
            with lock:
                out += 1
                most = max(most, out)
            with lock:
                out -= 1
            flow.give(1, 1)

    callers = [Caller(publish_often) for _ in range(8)]
    assert [caller.join().error for caller in callers] == [None] * 8
    assert 1 <= most <= 3
    assert repr(flow) == IDLE
