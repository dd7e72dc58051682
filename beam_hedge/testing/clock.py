"""Virtual time for tests: a loop whose clock moves only when the test says so."""

from __future__ import annotations

import contextvars
import heapq
import math
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


# Sums of decimal fractions fall short of the exact value by some 1e-16: a timer this close counts as due,
# as it does in asyncio.
_RESOLUTION = 1e-9

_MOST_TURNS = 100_000


class FakeHandle:
    """One scheduled callback, returned by the scheduling methods of `FakeClock`."""

    __slots__ = ("_args", "_callback", "_context", "_when")

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: contextvars.Context | None,
    ) -> None:
        self._when = when
        self._callback: Callable[..., object] | None = callback
        self._args = args
        self._context = contextvars.copy_context() if context is None else context

    def cancel(self) -> None:
        """Prevents the callback from running and lets go of it and its arguments; harmless when repeated."""
        self._callback = None
        self._args = ()

    def cancelled(self) -> bool:
        """Returns True once the handle was cancelled or its callback has run."""
        return self._callback is None

    def when(self) -> float:
        """Returns the time, in seconds, at which the callback is due."""
        return self._when

    def run(self) -> None:
        """Runs the callback in its context, unless it was cancelled or has run."""
        callback, args = self._callback, self._args
        self.cancel()
        if callback is not None:
            self._context.run(callback, *args)

    def __repr__(self) -> str:
        state = "over" if self._callback is None else "waiting"
        return f"<FakeHandle when={self._when:g} {state}>"


class FakeClock:
    """A clock and a scheduler in virtual time, with the ordering rules of an asyncio loop.

    Callbacks run in the test's own thread, inside `advance()` and `run_ready()`, and nowhere else. A turn
    runs the callbacks that were ready when it began; what they schedule with `call_soon()` waits for the next
    turn, and timers that fall due go behind what is ready already. Equal times run in the order of
    scheduling. `asyncio.Future(loop=clock)` works. Not safe for use from several threads.

    Args:
        start: What `time()` says at first, in seconds; default 0.

    Attributes:
        unhandled: The contexts given to `call_exception_handler()`, such as those of futures whose exception
            nobody retrieved. A test can assert that it is empty.

    Example:
        >>> clock = FakeClock()
        >>> seen = []
        >>> handle = clock.call_later(0.2, seen.append, "due")
        >>> clock.advance(0.199)
        >>> seen
        []
        >>> clock.advance(0.001)
        >>> seen
        ['due']
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = float(start)
        self._scheduled = 0
        self._timers: list[tuple[float, int, FakeHandle]] = []
        self._ready: deque[FakeHandle] = deque()
        self.unhandled: list[dict[str, Any]] = []

    def time(self) -> float:
        """Returns the virtual time in seconds."""
        return self._now

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> FakeHandle:
        """Schedules a callback for the next turn.

        Args:
            callback: What to call.
            *args: Its arguments.
            context: The context to run it in; default: a copy of the caller's.

        Returns:
            A handle that can cancel it.
        """
        handle = FakeHandle(self._now, callback, args, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> FakeHandle:
        """Schedules a callback for a virtual time; one in the past is due in the next turn.

        Args:
            when: The time in seconds, on the scale of `time()`.
            callback: What to call.
            *args: Its arguments.
            context: The context to run it in; default: a copy of the caller's.

        Returns:
            A handle that can cancel it.

        Raises:
            ValueError: If `when` is not a number, since such a timer would never fall due.
        """
        if math.isnan(when):
            raise ValueError("a timer needs a time, got NaN")
        handle = FakeHandle(when, callback, args, context)
        self._scheduled += 1
        heapq.heappush(self._timers, (when, self._scheduled, handle))
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> FakeHandle:
        """Schedules a callback `delay` seconds from now; otherwise as `call_at()`."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def advance(self, seconds: float) -> None:
        """Moves time forward and runs all work that falls due on the way, each piece at its own time.

        Args:
            seconds: How far to move, 0 or more.

        Raises:
            ValueError: If `seconds` is negative or not finite.
            RuntimeError: If the work goes on for ever without time passing.
            Exception: Whatever a callback raises; the rest of the work stays scheduled.
        """
        if not (math.isfinite(seconds) and seconds >= 0):
            raise ValueError(f"time moves forward by a finite number of seconds, got {seconds!r}")
        target = self._now + seconds
        self.run_ready()
        while (when := self._next_timer()) is not None and when <= target + _RESOLUTION:
            self._now = min(max(self._now, when), target)
            self.run_ready()
        self._now = target

    def run_ready(self) -> None:
        """Runs turns at the present time until nothing is ready and no timer is due; see `advance()`."""
        for _ in range(_MOST_TURNS):
            self._collect_due()
            if not self._ready:
                return
            for _ in range(len(self._ready)):
                self._ready.popleft().run()
        raise RuntimeError(
            f"still busy after {_MOST_TURNS} turns at {self._now:g} s: some callback reschedules itself"
        )

    def pending(self) -> int:
        """Returns how many callbacks are scheduled and neither run nor cancelled."""
        return sum(not handle.cancelled() for handle in self._ready) + sum(
            not handle.cancelled() for _, _, handle in self._timers
        )

    def get_debug(self) -> bool:
        """Returns False, which `asyncio.Future` asks of its loop."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keeps the context of an error that no caller could be told of in `unhandled`."""
        self.unhandled.append(context)

    def _next_timer(self) -> float | None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def _collect_due(self) -> None:
        while (when := self._next_timer()) is not None and when <= self._now + _RESOLUTION:
            self._ready.append(heapq.heappop(self._timers)[2])

    def __repr__(self) -> str:
        return f"<FakeClock time={self._now:g} pending={self.pending()}>"
