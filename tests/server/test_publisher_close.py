"""How a publisher ends: drained, cut short, or closed in an unusual way."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING

import pytest
from google.cloud.pubsub_v1.types import LimitExceededBehavior, PublishFlowControl

from beam_hedge import HedgingPublisher, PublisherClosedError, WrongThreadError
from beam_hedge.testing import NEVER
from tests.server.serving import (
    EAGER,
    PATIENCE,
    TOPIC,
    UNHURRIED,
    all_ended,
    by_attempt,
    eventually,
    held,
    serving,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.testing import LocalPubSub


def test_close_drains_and_goes_on_hedging() -> None:
    """What was accepted before `close()` is published, late batches by a hedge as ever."""
    with serving(by_attempt(NEVER, None)) as server:
        publisher = HedgingPublisher(TOPIC, EAGER)
        futures = [publisher.publish([b"%d" % number]) for number in range(5)]
        publisher.close()
        assert [future.done() for future in futures] == [True] * 5
        assert [future.result().winner for future in futures] == [1] * 5
        assert len(server.messages(TOPIC)) >= 5
        assert all_ended(server, 10)


def test_close_with_a_timeout_cancels_what_is_left() -> None:
    """A shutdown that may not take long ends, and nothing is left running at the service."""
    with serving(lambda record: NEVER if record.messages[0].data == b"stuck" else None) as server:
        publisher = HedgingPublisher(TOPIC, UNHURRIED)
        stuck = publisher.publish([b"stuck"])
        fine = publisher.publish([b"fine"])
        server.wait_for(lambda ledger: ledger.requests == 2, timeout=PATIENCE)
        started = time.monotonic()
        publisher.close(timeout=0.2)
        took = time.monotonic() - started
        assert fine.result(0).attempts == 1
        with pytest.raises(CancelledError):
            stuck.result(0)
        assert sorted(record.cancelled for record in all_ended(server, 2)) == [False, True]
    assert 0.2 <= took < PATIENCE / 2


def test_publishing_after_close_raises() -> None:
    """A message that nobody would send is refused, not lost."""
    with serving() as server:
        publisher = HedgingPublisher(TOPIC)
        publisher.close()
        with pytest.raises(PublisherClosedError):
            publisher.publish([b"x"])
        assert server.ledger().requests == 0


def test_close_twice_is_harmless() -> None:
    """`with` and an explicit `close()` go together, while another publisher is open and after the last."""
    with serving() as server, HedgingPublisher(TOPIC) as other:
        with HedgingPublisher(TOPIC) as publisher:
            publisher.publish([b"x"]).result(PATIENCE)
            publisher.close()
            publisher.close(timeout=0)
        other.publish([b"y"]).result(PATIENCE)
        other.close()
        assert len(server.messages(TOPIC)) == 2


def test_many_threads_may_close_at_once() -> None:
    """Each of them returns, whoever was first, and none of them raises."""
    threads = 8
    with serving(), ThreadPoolExecutor(threads) as pool:
        for _ in range(25):
            publisher = HedgingPublisher(TOPIC)
            publisher.publish([b"x"]).result(PATIENCE)
            together = threading.Barrier(threads)
            closing = [pool.submit(_close_together, publisher, together) for _ in range(threads)]
            _, hanging = wait(closing, PATIENCE / 4)
            if hanging:
                _free(publisher)
            assert not hanging, f"{len(hanging)} threads hang in close()"
            for closed in closing:
                closed.result()


def _close_together(publisher: HedgingPublisher, together: threading.Barrier) -> None:
    together.wait(PATIENCE)
    publisher.close()


def _free(publisher: HedgingPublisher) -> None:
    # Threads of a pool are waited for at exit: without this a hanging one would hang the whole run.
    for waiter in list(publisher._engine._users):
        getattr(waiter, "engine_died", lambda _: None)(RuntimeError("freed by the test"))


def test_close_from_a_callback_raises_and_the_publisher_lives_on() -> None:
    """A callback that closes its publisher would wait for itself: it gets an error, not a deadlock."""
    with serving() as server, HedgingPublisher(TOPIC, UNHURRIED) as publisher:
        closed = _in_a_callback(server, publisher, publisher.close)
        assert isinstance(closed.exception(PATIENCE), WrongThreadError)
        publisher.publish([b"y"]).result(PATIENCE)


def test_making_a_publisher_in_a_callback_raises() -> None:
    """A callback cannot wait for its own thread to open connections: it gets an error, not a deadlock."""
    with serving() as server, HedgingPublisher(TOPIC, UNHURRIED) as publisher:
        made = _in_a_callback(server, publisher, partial(HedgingPublisher, TOPIC))
        assert isinstance(made.exception(PATIENCE), WrongThreadError)
        publisher.publish([b"y"]).result(PATIENCE)


def _in_a_callback(
    server: LocalPubSub, publisher: HedgingPublisher, work: Callable[[], object]
) -> Future[object]:
    """Does work in a callback on the engine's thread, and returns a future of what came of it."""
    came: Future[object] = Future()

    def do(_: object) -> None:
        assert publisher._engine.is_current_thread
        try:
            came.set_result(work())
        except Exception as error:  # noqa: BLE001 - handed to the test
            came.set_exception(error)

    with held(server):
        publisher.publish([b"x"]).add_done_callback(do)
    return came


def test_a_callback_that_raises_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """An error in one caller's callback is logged and does not reach the batches of others."""
    with serving() as server, HedgingPublisher(TOPIC, UNHURRIED) as publisher:
        with held(server):
            for error in (ValueError("my callback"), SystemExit(3), KeyboardInterrupt()):
                publisher.publish([b"x"]).add_done_callback(partial(_raise, error))
        for _ in range(20):
            publisher.publish([b"y"]).result(PATIENCE)
        assert publisher.usable
    assert "my callback" in caplog.text
    assert "SystemExit" in caplog.text


def _raise(error: BaseException, _: object) -> None:
    raise error


def test_close_while_a_publish_waits_for_flow_control() -> None:
    """A caller who is blocked in `publish()` is told that the publisher closed; nobody waits for ever."""
    one = PublishFlowControl(
        message_limit=1, byte_limit=10**6, limit_exceeded_behavior=LimitExceededBehavior.BLOCK
    )
    with serving() as server, ThreadPoolExecutor(2) as pool:
        publisher = HedgingPublisher(TOPIC, None, flow_control=one)
        with held(server):
            first = publisher.publish([b"first"])
            blocked = pool.submit(publisher.publish, [b"blocked"])
            eventually(lambda: publisher._flow._waiting)
            closing = pool.submit(publisher.close)
            assert isinstance(blocked.exception(PATIENCE), PublisherClosedError)
            assert not first.done()
            server.wait_for(lambda ledger: ledger.open == 1, timeout=PATIENCE)
        closing.result(PATIENCE)
        assert first.result(0).attempts == 1
        assert [message.data for message in server.messages(TOPIC)] == [b"first"]


def test_close_returns_while_the_network_stands_still() -> None:
    """A shutdown with a timeout ends in time, though no packet gets through to tell anybody."""
    with serving(relay=True) as server:
        publisher = HedgingPublisher(TOPIC, EAGER)
        publisher.publish([b"first"]).result(PATIENCE)
        futures = [publisher.publish([b"more"]) for _ in range(4)]
        wait(futures, PATIENCE)
        for connection in server.connections():
            server.freeze(connection.client_port)
        stuck = [publisher.publish([b"stuck"]) for _ in range(4)]
        publisher.close(timeout=0.2)
        assert all(future.cancelled() for future in stuck)
