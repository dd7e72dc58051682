"""An asyncio loop in virtual time: when nothing is ready, its clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """Does not wait for a timer, but has time pass at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """Looks for what is ready, and moves the clock if there is nothing."""
        events = super().select(0)
        if not events:
            assert timeout is not None, "the test waits for what nothing will bring"
            self.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that starts at 0 s and never really waits."""

    def __init__(self) -> None:
        self._clock = _Jumping()
        super().__init__(self._clock)

    def time(self) -> float:
        """Virtual seconds."""
        return self._clock.now


def run(test: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end in virtual time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(test)
    finally:
        # What a test leaves out would otherwise be destroyed half done.
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
