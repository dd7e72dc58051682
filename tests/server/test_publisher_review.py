"""The engine goes on and gives everything back, whatever a program's own code does around it."""

from __future__ import annotations

import concurrent.futures
import gc
import logging
import threading
import weakref
from typing import TYPE_CHECKING

from beam_hedge import HedgingPublisher, HedgingSettings
from beam_hedge.engine import join_engine
from beam_hedge.testing import LocalPubSub, Reply

if TYPE_CHECKING:
    import pytest

    from beam_hedge.testing import RequestRecord

_TOPIC = "projects/demo-project/topics/out"


class _User:
    def engine_died(self) -> None:
        """Nothing waits here."""


def test_answers_have_their_turn_while_work_is_handed_over() -> None:
    """A program that publishes without a pause does not keep the engine from seeing answers."""
    user = _User()
    engine = join_engine(user)
    turns: list[int] = []
    done = threading.Event()
    count = 500

    def work(number: int) -> None:
        if number == 0:
            engine.loop.call_soon(turns.append, -1)
        turns.append(number)
        if number == count - 1:
            done.set()

    def hand_over() -> None:
        # On the engine's own thread, so that all of it waits when the next turn begins.
        for number in range(count):
            engine.submit(work, number)

    engine.submit(hand_over)
    assert done.wait(30)
    engine.leave(user)
    engine.wait_ended()
    assert turns.index(-1) < 100


def test_a_log_filter_that_raises_leaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program's log filter that raises costs a log line, never a permit or an attempt that goes on."""
    logger = logging.getLogger("beam_hedge")

    class _Raises(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            if record.name == "beam_hedge":
                raise RuntimeError(record.name)
            return True

    monkeypatch.setattr(logger, "filters", [_Raises()])
    release = threading.Event()

    def script(record: RequestRecord) -> Reply:
        return Reply(until=release) if record.number == 1 else Reply(delay=0.4)

    settings = HedgingSettings(hedge_delay=0.1, initial_tokens=1, max_tokens=1)
    with LocalPubSub(script=script) as server, server.environment():
        server.create_topic(_TOPIC)
        with HedgingPublisher(_TOPIC, settings) as publisher:
            outcome = publisher.publish([b"late"]).result(timeout=30)
            assert outcome.hedges == 1
            assert publisher._flow.wait_idle(10), "the permits came back"
        release.set()


def test_a_finished_future_is_freed_without_the_cycle_collector() -> None:
    """Outcomes of a long-running worker do not pile up until the garbage collector comes by."""
    with LocalPubSub() as server, server.environment():
        server.create_topic(_TOPIC)
        with HedgingPublisher(_TOPIC) as publisher:
            publisher.publish([b"connects"]).result(timeout=30)
            gc.collect()
            gc.disable()
            try:
                futures = [publisher.publish([b"x"]) for _ in range(20)]
                concurrent.futures.wait(futures, timeout=30)
                assert publisher._flow.wait_idle(10)
                alive = [weakref.ref(future) for future in futures]
                publisher.publish([b"the engine's own last reference goes with this one"]).result(timeout=30)
                del futures
                assert sum(future() is not None for future in alive) <= 1
            finally:
                gc.enable()
