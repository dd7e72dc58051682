"""The threads that run the handlers."""

from __future__ import annotations

import threading
from collections import deque
from concurrent import futures
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class HandlerThreads(futures.Executor):
    """A pool whose threads are made on demand and end when they are idle, so that their number tells the load.

    The standard pool keeps all its threads, and the interpreter waits for them at exit: with a handler that
    never answers it would wait for ever. These threads are daemons. They are owned by the server; each ends
    after a second without work, or at `close()`. The lock guards the queue and the counts and is held for
    moments.

    Args:
        limit: The most threads; further work waits for a free one.
        idle_seconds: How long a thread without work lives.
    """

    def __init__(self, limit: int, idle_seconds: float = 1.0) -> None:
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._has_work = threading.Condition(self._lock)
        self._thread_ended = threading.Condition(self._lock)
        self._work: deque[Callable[[], None]] = deque()
        self._threads = 0
        self._idle = 0
        self._closed = False

    @property
    def alive(self) -> int:
        """The number of threads, busy and idle."""
        return self._threads

    @property
    def busy(self) -> int:
        """The number of threads that run a handler."""
        with self._lock:
            return self._threads - self._idle

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        """Has `fn` called on one of the threads, as `concurrent.futures.Executor.submit()` does."""
        future: futures.Future[Any] = futures.Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args, **kwargs))
                except BaseException as error:  # noqa: BLE001 - a future carries whatever was raised
                    future.set_exception(error)

        with self._lock:
            if self._closed:
                raise RuntimeError("the server has stopped")
            self._work.append(run)
            if self._idle >= len(self._work):
                self._has_work.notify()
            elif self._threads < self._limit:
                self._threads += 1
                threading.Thread(target=self._serve, name="local-pubsub-handler", daemon=True).start()
        return future

    def join(self, timeout: float) -> bool:
        """Waits until all threads have ended for want of work; returns False if `timeout` seconds pass."""
        with self._lock:
            return self._thread_ended.wait_for(lambda: self._threads == 0, timeout)

    def close(self, timeout: float) -> bool:
        """Lets all threads end, and waits for them; returns False if some are busy after `timeout` seconds."""
        with self._lock:
            self._closed = True
            self._has_work.notify_all()
        return self.join(timeout)

    def _serve(self) -> None:
        while (run := self._next()) is not None:
            run()
            # An idle thread must not keep the last request alive.
            del run

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            if not self._work:
                self._idle += 1
                self._has_work.wait_for(lambda: self._work or self._closed, self._idle_seconds)
                self._idle -= 1
            if self._work:
                return self._work.popleft()
            self._threads -= 1
            self._thread_ended.notify_all()
            return None
