"""Threads that wait for flow control, and a way to know that they do without looking at the clock."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud.pubsub_v1.types import LimitExceededBehavior, PublishFlowControl

from beam_hedge.flow_control import FlowController, Permits

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 20


class Flow(FlowController):
    """Flow control whose batches the tests name by their sizes."""

    def __init__(self, settings: PublishFlowControl) -> None:
        super().__init__(settings)
        self._taken: list[Permits] = []

    def take(self, messages: int, size: int, *, may_wait: bool = True) -> None:
        """Acquires permits as `publish()` does, which gives up what an interrupt leaves it with."""
        permits = Permits(messages, size)
        try:
            self.acquire(permits, may_wait=may_wait)
            self._taken.append(permits)
        except BaseException:
            self.release(permits)
            raise

    def give(self, messages: int, size: int) -> None:
        """Gives back the permits of a batch of this size."""
        taken = next(each for each in self._taken if (each.messages, each.size) == (messages, size))
        self._taken.remove(taken)
        self.release(taken)


def controller(
    messages: int = 10, size: int = 1000, behaviour: LimitExceededBehavior = LimitExceededBehavior.BLOCK
) -> Flow:
    """Makes a controller with small limits."""
    return Flow(PublishFlowControl(messages, size, behaviour))


class WatchedQueue(deque[Any]):
    """The controller's queue of those who wait; tells when one more does.

    Attributes:
        joined: Released once for each that waits. It is about to wait, and cannot miss what comes.
        on_join: Called with each.
    """

    def __init__(self, flow: FlowController) -> None:
        super().__init__()
        self.joined = threading.Semaphore(0)
        self.on_join: Callable[[Any], object] = _nothing
        flow._waiting = self

    def append(self, waiter: Any) -> None:
        """Takes one more into the queue."""
        self.on_join(waiter)
        super().append(waiter)
        self.joined.release()


class Caller:
    """A thread that makes one call which may wait. It is a daemon, and must be joined."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.result: object = None
        self.error: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    @property
    def waits(self) -> bool:
        """Whether the call has not returned. One that is in the queue returns only if somebody lets it."""
        return self._thread.is_alive()

    def join(self) -> Caller:
        """Waits for the call to return, and fails if it does not."""
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "the call waits for ever"
        return self


class _Interrupted:
    """Stands for the wait of a thread to which a signal comes."""

    def __init__(self, first: Callable[[], object]) -> None:
        self._first = first

    def wait(self) -> None:
        self._first()
        raise KeyboardInterrupt

    def set(self) -> None:
        """Would let the thread go on; the signal does."""


class Line:
    """Callers that wait for permits one behind the other."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._queue = WatchedQueue(flow)
        self.callers: list[Caller] = []

    def join(self, messages: int, size: int = 1) -> Caller:
        """Adds one that asks for so much; returns when it waits."""
        caller = Caller(lambda: self._flow.take(messages, size))
        self.callers.append(caller)
        assert self._queue.joined.acquire(timeout=SECONDS)
        return caller

    def interrupt(self, messages: int, while_waiting: Callable[[], object]) -> None:
        """Asks for so much on this thread, and is interrupted after something else has happened."""

        def on_join(waiter: Any) -> None:
            self._queue.on_join = _nothing
            waiter.admitted = _Interrupted(lambda: (self._queue.joined.acquire(), while_waiting()))

        self._queue.on_join = on_join
        with pytest.raises(KeyboardInterrupt):
            self._flow.take(messages, 1)

    @property
    def waiting(self) -> list[int]:
        """How many messages each of those who wait asks for, in their order."""
        return [waiter.messages for waiter in self._queue]


def _nothing(_waiter: object) -> None:
    """What happens when a caller joins the queue, unless a test says otherwise."""
