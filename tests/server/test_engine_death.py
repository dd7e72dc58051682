"""The engine's thread ends when it should not: everybody who waits for it is told."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from google.cloud.pubsub_v1.types import LimitExceededBehavior, PublishFlowControl

from beam_hedge import EngineDiedError, HedgingPublisher
from beam_hedge.testing import NEVER
from tests.server.serving import (
    EAGER,
    PATIENCE,
    TOPIC,
    UNHURRIED,
    by_attempt,
    eventually,
    held,
    serving,
)

if TYPE_CHECKING:
    from beam_hedge.engine import Engine


def kill(engine: Engine) -> None:
    """Ends the engine's thread from inside, as nobody should."""
    engine.loop.call_soon_threadsafe(engine.loop.stop)
    engine._thread.join(PATIENCE)
    assert not engine._thread.is_alive()


def test_callers_who_wait_are_told() -> None:
    """A bundle that waits for its batches fails and is tried again; it does not hang."""
    with serving(NEVER) as server, ThreadPoolExecutor(4) as pool:
        publisher = HedgingPublisher(TOPIC, EAGER)
        futures = [publisher.publish([b"%d" % number]) for number in range(4)]
        waiting = [pool.submit(future.result) for future in futures]
        server.wait_for(lambda ledger: ledger.requests >= 4, timeout=PATIENCE)
        kill(publisher._engine)
        assert all(isinstance(waiter.exception(PATIENCE), EngineDiedError) for waiter in waiting)
        publisher.close()


def test_callers_who_are_held_back_by_flow_control_are_told() -> None:
    """A caller who is blocked in `publish()` gets the error, too."""
    one = PublishFlowControl(
        message_limit=1, byte_limit=10**6, limit_exceeded_behavior=LimitExceededBehavior.BLOCK
    )
    with serving(NEVER), ThreadPoolExecutor(1) as pool:
        publisher = HedgingPublisher(TOPIC, None, flow_control=one)
        publisher.publish([b"out"])
        blocked = pool.submit(publisher.publish, [b"blocked"])
        eventually(lambda: publisher._flow._waiting)
        kill(publisher._engine)
        assert isinstance(blocked.exception(PATIENCE), EngineDiedError)


def test_a_dead_publisher_says_so_and_closes() -> None:
    """What comes later fails at once, and `close()` returns."""
    with serving(), HedgingPublisher(TOPIC) as publisher:
        publisher.publish([b"x"]).result(PATIENCE)
        kill(publisher._engine)
        assert not publisher.usable
        with pytest.raises(EngineDiedError):
            publisher.publish([b"y"])
        with pytest.raises(EngineDiedError):
            publisher.publish([b"z"])


def test_close_returns_if_the_thread_died_between_an_outcome_and_its_losers() -> None:
    """A batch with an outcome whose losers never ended does not keep `close()` waiting for ever."""
    with serving(by_attempt(NEVER, None)), ThreadPoolExecutor(1) as pool:
        publisher = HedgingPublisher(TOPIC, EAGER)
        stop = publisher._engine.loop.stop
        future = publisher.publish([b"x"])
        future.add_done_callback(lambda _: stop())
        assert future.result(PATIENCE).winner == 1
        publisher._engine._thread.join(PATIENCE)
        pool.submit(publisher.close).result(PATIENCE)


def test_all_publishers_of_the_process_are_told_and_new_ones_work() -> None:
    """One engine serves all publishers: when it dies all of them say so, and a new one starts afresh."""
    with serving() as server:
        old = [HedgingPublisher(TOPIC, UNHURRIED) for _ in range(3)]
        with held(server):
            futures = [publisher.publish([b"old"]) for publisher in old]
            server.wait_for(lambda ledger: ledger.open == 3, timeout=PATIENCE)
            kill(old[0]._engine)
            assert all(isinstance(future.exception(PATIENCE), EngineDiedError) for future in futures)
        with HedgingPublisher(TOPIC, UNHURRIED) as new:
            assert new._engine is not old[0]._engine
            assert new.publish([b"new"]).result(PATIENCE).attempts == 1
        for publisher in old:
            publisher.close()


def test_a_dead_engine_leaves_no_thread_and_no_open_loop() -> None:
    """After a death, once its publishers are closed, nothing of the engine remains."""
    with serving():
        publisher = HedgingPublisher(TOPIC)
        publisher.publish([b"x"]).result(PATIENCE)
        engine = publisher._engine
        kill(engine)
        publisher.close()
        assert engine.loop.is_closed()
        assert "beam_hedge-engine" not in {thread.name for thread in threading.enumerate()}
    del publisher, engine
    gc.collect()
