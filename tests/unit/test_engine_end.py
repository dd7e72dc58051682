"""Nobody waits for ever when the engine's thread ends."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from beam_hedge.engine import join_engine
from beam_hedge.errors import EngineDiedError
from beam_hedge.publisher import HedgingPublisher

if TYPE_CHECKING:
    from collections.abc import Callable

TOPIC = "projects/p-test/topics/out"
_SECONDS = 10


class _User:
    """Stands for a publisher."""

    def __init__(self) -> None:
        self.told = threading.Event()

    def engine_died(self) -> None:
        self.told.set()


def _in_threads(count: int, work: Callable[[], object]) -> list[BaseException]:
    """Runs work on several daemon threads at once; returns what they raised. One that hangs fails the test."""
    barrier = threading.Barrier(count)
    raised: list[BaseException] = []

    def run() -> None:
        barrier.wait(_SECONDS)
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            raised.append(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    return raised


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint at which nobody listens; a publisher without requests never connects."""
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:9")


def test_a_call_that_waits_gets_an_error_when_the_last_user_leaves() -> None:
    """A thread that waits for the engine is told when another thread ends it."""
    user = _User()
    engine = join_engine(user)
    started = threading.Event()

    async def wait_for_ever() -> None:
        started.set()
        await asyncio.Event().wait()

    def leave() -> None:
        assert started.wait(_SECONDS)
        engine.leave(user)

    leaver = threading.Thread(target=leave, daemon=True)
    leaver.start()
    raised = _in_threads(1, lambda: engine.run(wait_for_ever))
    leaver.join(_SECONDS)
    engine.wait_ended()
    assert [type(error) for error in raised] == [EngineDiedError]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_call_that_waits_gets_an_error_when_the_thread_dies() -> None:
    """A thread that waits for the engine is told when the engine dies, and so are its users."""
    user = _User()
    engine = join_engine(user)

    def end() -> None:
        raise SystemExit

    async def die_and_wait() -> None:
        engine.submit(end)
        await asyncio.Event().wait()

    raised = _in_threads(1, lambda: engine.run(die_and_wait))
    assert [type(error) for error in raised] == [EngineDiedError]
    assert user.told.wait(_SECONDS)
    with pytest.raises(EngineDiedError):
        engine.submit(print)
    engine.wait_ended()
    assert engine.loop.is_closed()
    assert not asyncio.all_tasks(engine.loop)


@pytest.mark.usefixtures("nowhere")
def test_threads_that_close_a_publisher_at_once_all_return() -> None:
    """Closing is harmless when several threads do it at the same time."""
    for _ in range(20):
        publisher = HedgingPublisher(TOPIC)
        assert _in_threads(3, publisher.close) == []


@pytest.mark.usefixtures("nowhere")
def test_publishers_that_open_and_close_on_many_threads_do_not_disturb_each_other() -> None:
    """Bundles that start and end at the same time each get a publisher that works."""

    def open_and_close() -> None:
        for _ in range(10):
            HedgingPublisher(TOPIC).close()

    assert _in_threads(4, open_and_close) == []


def test_ctrl_c_while_the_engine_is_woken_does_not_put_it_to_sleep_for_ever() -> None:
    """An interrupt in one thread's call leaves the engine awake for everybody else's."""
    user = _User()
    engine = join_engine(user)
    wake = engine.loop.call_soon_threadsafe

    def interrupted(*_args: object) -> asyncio.Handle:
        engine.loop.call_soon_threadsafe = wake  # type: ignore[method-assign]
        raise KeyboardInterrupt

    try:
        engine.loop.call_soon_threadsafe = interrupted  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            engine.submit(print)
        ran = threading.Event()
        engine.submit(ran.set)
        assert ran.wait(_SECONDS)
    finally:
        engine.leave(user)
        engine.wait_ended()
