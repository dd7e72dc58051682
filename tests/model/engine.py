"""The engine without its thread: work is done in the test's own, in virtual time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from beam_hedge.errors import EngineDiedError
from beam_hedge.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from beam_hedge.publisher import HedgingPublisher
    from beam_hedge.testing.clock import FakeHandle


class VirtualLoop(FakeClock):
    """A clock that runs coroutines, too, and knows which timers are those of batches."""

    def __init__(self, start: float) -> None:
        super().__init__(start)
        self._others: list[FakeHandle] = []

    def call_later(self, *args: Any, **more: Any) -> FakeHandle:
        """Schedules what is no batch's: lingers, the network's work, and what the test has in mind."""
        self._others = [handle for handle in self._others if not handle.cancelled()]
        self._others.append(super().call_later(*args, **more))
        return self._others[-1]

    @property
    def timers_of_batches(self) -> int:
        """How many timers batches have set; they give the moment, where all others give a delay."""
        return self.pending() - sum(not handle.cancelled() for handle in self._others)

    def create_future(self) -> asyncio.Future[Any]:
        """Returns a future of this loop."""
        return asyncio.Future(loop=cast("asyncio.AbstractEventLoop", self))

    def create_task(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        """Starts a coroutine, whose end is the future's."""
        done = self.create_future()
        self.call_soon(self._step, coroutine, done)
        return done

    def _step(self, coroutine: Coroutine[Any, Any, Any], done: asyncio.Future[Any]) -> None:
        try:
            waits_for = coroutine.send(None)
        except StopIteration as end:
            done.set_result(end.value)
        else:
            waits_for.add_done_callback(lambda _: self._step(coroutine, done))


class VirtualEngine:
    """Stands for the engine. Another sink of the process keeps it alive, so it ends only if it dies.

    Attributes:
        loop: Its time.
        alive: Whether it has not died.
        is_current_thread: Whether the caller is one of its callbacks, which tests are not.
    """

    is_current_thread = False

    def __init__(self, start: float) -> None:
        self.loop = VirtualLoop(start)
        self.alive = True
        self._users: set[HedgingPublisher] = set()

    def join(self, user: HedgingPublisher) -> VirtualEngine:
        """Takes one more user."""
        self._users.add(user)
        return self

    def leave(self, user: HedgingPublisher) -> None:
        """Ends a user's use."""
        self._users.discard(user)

    def submit(self, callback: Callable[..., object], *args: object) -> None:
        """Hands over work."""
        if not self.alive:
            raise EngineDiedError
        self.loop.call_soon(callback, *args)

    def run(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Runs a coroutine to its end."""
        task = self.loop.create_task(work())
        self.loop.run_ready()
        return task.result()

    def check_process(self) -> None:
        """There is no fork here."""

    def wait_ended(self) -> None:
        """Nobody waits for an end that does not come."""

    def die(self) -> None:
        """Ends it for good, with all that it has to do."""
        self.alive = False
        for user in self._users:
            user.engine_died()
