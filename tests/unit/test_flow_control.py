"""Flow control without waiting: what fits, what is refused, and what is given back."""

from __future__ import annotations

import pytest
from google.cloud.pubsub_v1.publisher.exceptions import FlowControlLimitError
from google.cloud.pubsub_v1.types import LimitExceededBehavior
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.errors import EngineDiedError, PublisherClosedError, WrongThreadError
from tests.unit.waiting import controller

BLOCK, ERROR, IGNORE = LimitExceededBehavior.BLOCK, LimitExceededBehavior.ERROR, LimitExceededBehavior.IGNORE
# What a thread that may not wait gets, when it would have to.
REFUSED = {BLOCK: WrongThreadError, ERROR: FlowControlLimitError}


@pytest.mark.parametrize("behaviour", list(LimitExceededBehavior))
def test_what_fits_is_admitted_at_once(behaviour: LimitExceededBehavior) -> None:
    """Both limits can be used up to their last message and byte."""
    flow = controller(10, 1000, behaviour)
    flow.take(4, 600, may_wait=False)
    flow.take(6, 400, may_wait=False)
    assert flow.batches == 2
    assert repr(flow) == "<FlowController 2 batches, 10 messages, 1000 B out>"


@pytest.mark.parametrize(("messages", "size"), [(5, 1), (1, 401), (5, 401)])
def test_error_refuses_what_does_not_fit_and_takes_no_permits_for_it(messages: int, size: int) -> None:
    """A user who asked for an error gets one that tells what is out and what the limits are."""
    flow = controller(10, 1000, ERROR)
    flow.take(6, 600)
    with pytest.raises(FlowControlLimitError, match=rf"{messages} more \({size} B\).*10 messages or 1000 B"):
        flow.take(messages, size)
    flow.give(6, 600)
    flow.take(6, 600)


def test_ignore_admits_everything() -> None:
    """A user who wants no limit gets none."""
    flow = controller(1, 1, IGNORE)
    for _ in range(50):
        flow.take(10, 10_000)
    assert flow.batches == 50


@pytest.mark.parametrize("behaviour", [BLOCK, ERROR])
@pytest.mark.parametrize(("messages", "size"), [(11, 1), (1, 1001), (1000, 10_000_000)])
def test_a_batch_over_a_whole_limit_goes_alone(
    behaviour: LimitExceededBehavior, messages: int, size: int
) -> None:
    """A batch that is larger than the limits is published, when nothing else is out."""
    flow = controller(10, 1000, behaviour)
    flow.take(messages, size, may_wait=False)
    with pytest.raises(REFUSED[behaviour]):
        flow.take(1, 1, may_wait=False)
    flow.give(messages, size)
    flow.take(1, 1, may_wait=False)
    with pytest.raises(REFUSED[behaviour]):
        flow.take(messages, size, may_wait=False)


@pytest.mark.parametrize("behaviour", [BLOCK, ERROR])
def test_a_thread_that_must_not_wait_gets_an_error(behaviour: LimitExceededBehavior) -> None:
    """The engine's own thread never waits for permits that only it can give back, and is told why."""
    flow = controller(10, 1000, behaviour)
    flow.take(10, 1)
    with pytest.raises(REFUSED[behaviour], match=r"10 messages \(1 B\) are out; 1 more \(1 B\)"):
        flow.take(1, 1, may_wait=False)
    flow.give(10, 1)
    flow.take(1, 1, may_wait=False)


@pytest.mark.parametrize("behaviour", list(LimitExceededBehavior))
def test_after_close_nobody_is_admitted(behaviour: LimitExceededBehavior) -> None:
    """A closed publisher takes no batch, whatever its flow control, and gives back what was out."""
    flow = controller(10, 1000, behaviour)
    flow.take(1, 1)
    flow.close(PublisherClosedError)
    with pytest.raises(PublisherClosedError):
        flow.take(1, 1)
    assert not flow.wait_idle(0)
    flow.give(1, 1)
    assert flow.wait_idle(None)


def test_abandoned_permits_are_forgotten() -> None:
    """When the engine has died, nobody waits for batches that nobody will end; a late end is harmless."""
    flow = controller()
    flow.take(3, 30)
    flow.take(4, 40)
    flow.close(EngineDiedError, abandon=True)
    assert flow.wait_idle(None)
    flow.give(3, 30)
    assert repr(flow) == "<FlowController 0 batches, 0 messages, 0 B out>"
    with pytest.raises(EngineDiedError):
        flow.take(1, 1)


def test_the_reason_of_the_last_close_is_the_one_that_callers_get() -> None:
    """A publisher whose engine dies while it closes says that the engine died."""
    flow = controller()
    flow.close(PublisherClosedError)
    flow.close(EngineDiedError, abandon=True)
    with pytest.raises(EngineDiedError):
        flow.take(1, 1)


def test_an_idle_controller_is_idle_at_once() -> None:
    """Closing a publisher that has nothing out does not wait."""
    flow = controller()
    assert flow.wait_idle(0)
    assert flow.wait_idle(None)
    flow.take(1, 1)
    assert not flow.wait_idle(0)
    assert not flow.wait_idle(-1)
    flow.give(1, 1)
    assert flow.wait_idle(0)


_sizes = st.tuples(st.integers(min_value=1, max_value=12), st.integers(min_value=1, max_value=1200))


@given(behaviour=st.sampled_from((BLOCK, ERROR)), steps=st.lists(st.one_of(_sizes, st.none()), max_size=60))
def test_what_is_out_is_within_the_limits_or_one_batch(
    behaviour: LimitExceededBehavior, steps: list[tuple[int, int] | None]
) -> None:
    """A batch is admitted exactly if it fits or is alone, and what is given back can be taken again."""
    flow = controller(10, 1000, behaviour)
    out: list[tuple[int, int]] = []
    for step in steps:
        if step is None:
            if out:
                flow.give(*out.pop(0))
            continue
        totals = [sum(column) for column in zip(*out, step, strict=True)]
        fits = not out or (totals[0] <= 10 and totals[1] <= 1000)
        try:
            flow.take(*step, may_wait=False)
        except REFUSED[behaviour]:
            assert not fits
        else:
            assert fits
            out.append(step)
        assert flow.batches == len(out)
    for batch in out:
        flow.give(*batch)
    assert repr(flow) == "<FlowController 0 batches, 0 messages, 0 B out>"
