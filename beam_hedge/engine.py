"""The process's one event loop, on a thread of its own, on which all publishers send.

One loop serves all publishers because gRPC's asyncio layer misbehaves with several in one process. The
thread starts with the first publisher and ends with the last.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from beam_hedge.errors import EngineDiedError, ForkedProcessError, WrongThreadError
from beam_hedge.last_resort import handle_loop_error

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

_WORK_PER_TURN = 16


class User(Protocol):
    """Who needs the engine, and is told when it dies."""

    def engine_died(self) -> None:
        """Ends all waiting with an `EngineDiedError`. Called on the engine's thread, last of all."""
        ...


class Engine:
    """An event loop on a daemon thread, and a way to hand it work from other threads.

    The engine owns its thread, which ends when the last user leaves, or with the interpreter. If it ends for
    any other reason, all users are told, so that nobody waits for ever. Made by `join_engine`; safe for
    concurrent use.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.alive = True
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(handle_loop_error)
        self._users: set[User] = set()
        self._waiters: set[_Waiter[Any]] = set()
        self._work: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._woken = False
        self._thread = threading.Thread(target=self._run, name="beam_hedge-engine", daemon=True)
        self._thread.start()

    @property
    def is_current_thread(self) -> bool:
        """Whether the caller runs on the engine's thread, which must never wait."""
        return threading.current_thread() is self._thread

    def check_process(self) -> None:
        """Refuses to work in a forked child, where the thread does not exist.

        Raises:
            ForkedProcessError: This is not the process that started the engine.
        """
        if self.pid != os.getpid():
            raise ForkedProcessError

    def submit(self, callback: Callable[..., object], *args: object) -> None:
        """Runs `callback(*args)` on the engine's thread, soon.

        Work that comes while the thread wakes up costs no second wake-up.

        Raises:
            EngineDiedError: The thread has ended.
        """
        # Looked at first: a user who is enlisted and finds it alive is told if it dies from now on.
        if not self.alive:
            raise EngineDiedError
        self._work.append((callback, args))
        if not self._woken:
            self._wake()

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Runs a coroutine on the engine's loop, waits for it and returns its result.

        Raises:
            WrongThreadError: This is the engine's thread.
            EngineDiedError: The thread has ended, or ends meanwhile.
        """
        if self.is_current_thread:
            raise WrongThreadError(
                "this call waits for the engine's thread, so it cannot be made on that thread"
            )
        waiter: _Waiter[T] = _Waiter(work)
        self._waiters.add(waiter)
        try:
            self.submit(waiter.start, self.loop)
            return waiter.result.result()
        finally:
            self._waiters.discard(waiter)

    def leave(self, user: User) -> None:
        """Ends one user's use. With the last one the thread ends, too; see `wait_ended`."""
        global _engine  # noqa: PLW0603 - the process has one engine, and this is where it is forgotten
        with _lock:
            self._users.discard(user)
            if self._users or not self.alive:
                return
            self.alive = False
            if _engine is self:
                _engine = None
        self.loop.call_soon_threadsafe(self.loop.stop)

    def wait_ended(self) -> None:
        """Waits for the thread to end, if the last user has left."""
        if not self.alive and not self.is_current_thread:
            self._thread.join()

    def _enlist(self, user: User) -> None:
        self._users.add(user)

    def _wake(self) -> None:
        try:
            self._woken = True
            self.loop.call_soon_threadsafe(self._do_work)
        except RuntimeError as error:
            raise EngineDiedError from error
        except BaseException:
            # Ctrl-C: others count on this wake-up. One too many does no harm.
            self.loop.call_soon_threadsafe(self._do_work)
            raise

    def _do_work(self) -> None:
        # Cleared first: whoever adds work from now on wakes the loop again.
        self._woken = False
        try:
            # A part only: answers and timers must have their turn however much is handed over.
            for _ in range(min(len(self._work), _WORK_PER_TURN)):
                callback, args = self._work.popleft()
                callback(*args)
        finally:
            if self._work and not self._woken:
                self._woken = True
                # On this thread, the loop need not be woken by a byte in its pipe.
                self.loop.call_soon(self._do_work)

    def _run(self) -> None:
        try:
            self.loop.run_forever()
        finally:
            self.alive = False
            try:
                self._close_loop()
            finally:
                # Those who are left when the last user has left are callers who came too late.
                for user in (*self._users, *self._waiters):
                    user.engine_died()

    def _close_loop(self) -> None:
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.wait(tasks, timeout=1))
        self.loop.close()


class _Waiter(Generic[T]):
    """A thread that waits for a coroutine's result."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.result: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._work = work
        self._task: asyncio.Task[None] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._task = loop.create_task(self._run())

    def engine_died(self) -> None:
        if not self.result.done():
            self.result.set_exception(EngineDiedError())

    async def _run(self) -> None:
        try:
            result = await self._work()
        except Exception as error:  # noqa: BLE001 - raised again in the waiting thread
            self.result.set_exception(error)
        else:
            self.result.set_result(result)


# Owned by this module; held only while an engine is made or ended.
_lock = threading.Lock()
_engine: Engine | None = None


def join_engine(user: User) -> Engine:
    """Returns the process's engine, started if there is none that lives, with one more user.

    Raises:
        ForkedProcessError: The engine was started before this process was forked.
    """
    global _engine  # noqa: PLW0603 - the process has one engine
    check_not_forked()
    with _lock:
        if _engine is None or not _engine.alive:
            _engine = Engine()
        _engine._enlist(user)  # noqa: SLF001 - under the lock, so that the engine cannot end in between
        return _engine


def check_not_forked() -> None:
    """Refuses to work in a child of a process whose engine was running.

    It takes no lock, which the fork may have left held.

    Raises:
        ForkedProcessError: The engine was started before this process was forked.
    """
    engine = _engine
    if engine is not None:
        engine.check_process()
