"""The threads that run LocalPubSub's handlers."""

from __future__ import annotations

import threading

import pytest

from beam_hedge.testing.workers import HandlerThreads

PATIENCE = 20


def test_there_is_a_thread_for_each_call_and_none_for_no_call() -> None:
    """Users can run many slow requests without keeping a thread for each for ever."""
    threads = HandlerThreads(limit=100, idle_seconds=0.01)
    arrived, release = threading.Barrier(31), threading.Event()

    def handle(number: int) -> int:
        arrived.wait(PATIENCE)
        release.wait(PATIENCE)
        return number

    calls = [threads.submit(handle, number) for number in range(30)]
    arrived.wait(PATIENCE)
    assert threads.alive == 30
    release.set()
    assert [call.result(PATIENCE) for call in calls] == list(range(30))
    assert threads.join(PATIENCE)
    assert threads.alive == 0


def test_calls_beyond_the_limit_wait_for_a_free_thread() -> None:
    """Users who reach the limit see calls wait, not fail."""
    threads = HandlerThreads(limit=2)
    release = threading.Event()
    calls = [threads.submit(release.wait, PATIENCE) for _ in range(5)]
    assert threads.alive == 2
    release.set()
    assert all(call.result(PATIENCE) for call in calls)
    assert threads.close(PATIENCE)


def test_an_error_stays_with_its_call() -> None:
    """Users lose no thread to a handler that fails."""
    threads = HandlerThreads(limit=1)
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result(PATIENCE)
    assert threads.submit(lambda: "next").result(PATIENCE) == "next"
    assert threads.close(PATIENCE)


def test_closing_tells_of_handlers_that_do_not_end() -> None:
    """Users learn that a function of theirs blocks the server, and no work is taken after the end."""
    threads = HandlerThreads(limit=1)
    release = threading.Event()
    call = threads.submit(release.wait, PATIENCE)
    assert not threads.close(timeout=0)
    with pytest.raises(RuntimeError, match="stopped"):
        threads.submit(print)
    release.set()
    assert call.result(PATIENCE)
    assert threads.close(PATIENCE)
