"""Callers who wait together when their publisher ends, dies, or has reached its limit."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.cloud.pubsub_v1.types import LimitExceededBehavior, PublishFlowControl

from beam_hedge import EngineDiedError, HedgingPublisher
from beam_hedge.testing import NEVER, Reply
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, all_ended, eventually, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from beam_hedge import PublishOutcome
    from beam_hedge.testing import LocalPubSub, RequestRecord

THREADS = 4
EXACTLY = PublishFlowControl(
    message_limit=THREADS, byte_limit=10**6, limit_exceeded_behavior=LimitExceededBehavior.ERROR
)


class Callers:
    """Threads that have each waited for a batch. The test ends them with `close`."""

    def __init__(self, publisher: HedgingPublisher) -> None:
        self._publisher = publisher
        self._pools = [ThreadPoolExecutor(1) for _ in range(THREADS)]
        for pool in self._pools:
            pool.submit(lambda: publisher.publish([b"warm"]).result(PATIENCE)).result(PATIENCE)
        # A caller has its outcome a moment before its permits are back.
        eventually(lambda: publisher._flow.batches == 0)

    def publish(self) -> list[Future[PublishOutcome]]:
        """Has each thread publish its number."""
        return [
            pool.submit(self._publisher.publish, [b"%d" % number]).result(PATIENCE)
            for number, pool in enumerate(self._pools)
        ]

    def close(self) -> None:
        """Ends the threads."""
        for pool in self._pools:
            pool.shutdown()


@contextmanager
def held_up(publisher: HedgingPublisher, first: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Holds the engine's thread until the end of the block, after it has done something."""
    go = threading.Event()
    publisher._engine.submit(lambda: (first(), go.wait(PATIENCE)))
    try:
        yield
    finally:
        go.set()


def stored(server: LocalPubSub) -> list[bytes]:
    """Returns what callers have stored, but for their first batches."""
    return sorted(message.data for message in server.messages(TOPIC) if message.data != b"warm")


def test_close_publishes_what_waits_together() -> None:
    """What was accepted before `close()` is published, though the engine has not seen it yet."""
    with serving() as server, ThreadPoolExecutor(1) as pool:
        publisher = HedgingPublisher(TOPIC, UNHURRIED)
        callers = Callers(publisher)
        with held_up(publisher):
            futures = callers.publish()
            closing = pool.submit(publisher.close)
            eventually(lambda: not publisher.usable)
        closing.result(PATIENCE)
        assert [future.result(0).attempts for future in futures] == [1] * THREADS
        assert stored(server) == [b"%d" % number for number in range(THREADS)]
        assert server.ledger().requests == THREADS + 1
        callers.close()


def test_close_at_once_sends_nothing_of_what_waits_together() -> None:
    """A shutdown that may not wait cancels all callers, and none of their messages leaves the process."""
    with serving() as server, ThreadPoolExecutor(1) as pool:
        publisher = HedgingPublisher(TOPIC, UNHURRIED)
        callers = Callers(publisher)
        with held_up(publisher):
            futures = callers.publish()
            closing = pool.submit(publisher.close, 0)
            eventually(lambda: all(future.cancelled() for future in futures))
        closing.result(PATIENCE)
        assert wait(futures, PATIENCE).not_done == set()
        assert server.ledger().requests == THREADS
        assert publisher._flow.batches == 0
        callers.close()


def test_close_with_a_timeout_cancels_a_shared_request() -> None:
    """A shared request that nobody answers ends with its publisher, for all its callers."""
    with serving(lambda record: None if record.messages[0].data == b"warm" else NEVER) as server:
        publisher = HedgingPublisher(TOPIC, UNHURRIED)
        callers = Callers(publisher)
        with held_up(publisher):
            futures = callers.publish()
        server.wait_for(lambda ledger: ledger.requests == THREADS + 1, timeout=PATIENCE)
        publisher.close(timeout=0)
        assert all(future.cancelled() for future in futures)
        assert all_ended(server, THREADS + 1)[-1].cancelled
        callers.close()


def test_an_engine_that_dies_tells_all_who_wait_together() -> None:
    """Callers whom the engine has not looked at yet get an error and do not hang."""
    with serving() as server:
        publisher = HedgingPublisher(TOPIC, UNHURRIED)
        callers = Callers(publisher)
        with held_up(publisher, publisher._engine.loop.stop):
            futures = callers.publish()
        assert all(isinstance(future.exception(PATIENCE), EngineDiedError) for future in futures)
        publisher.close()
        assert server.ledger().requests == THREADS
        callers.close()


def refuse_the_second(record: RequestRecord) -> Reply | None:
    """Refuses each request that holds the message of caller 1."""
    held = [message.data for message in record.messages]
    return Reply(status=grpc.StatusCode.INVALID_ARGUMENT) if b"1" in held else None


def missing(record: RequestRecord) -> Reply | None:
    """Says that there is no topic, but for the first batches."""
    return None if record.messages[0].data == b"warm" else Reply(status=grpc.StatusCode.NOT_FOUND)


def too_few_ids(record: RequestRecord) -> Reply | None:
    """Answers with one id, whatever was sent."""
    return None if record.messages[0].data == b"warm" else Reply(ids=1)


@pytest.mark.parametrize(
    ("script", "requests"),
    [(None, 1), (refuse_the_second, 1 + THREADS), (missing, 1), (too_few_ids, 1)],
    ids=["answered", "split", "missing", "short"],
)
def test_all_permits_come_back(script: Callable[[Any], Reply | None] | None, requests: int) -> None:
    """However a shared request ends, flow control admits as much as before, twice in a row."""
    with (
        serving(script) as server,
        HedgingPublisher(TOPIC, UNHURRIED, flow_control=EXACTLY) as publisher,
    ):
        callers = Callers(publisher)
        for _ in range(2):
            before = server.ledger().requests
            with held_up(publisher):
                futures = callers.publish()
            assert wait(futures, PATIENCE).not_done == set()
            eventually(lambda: publisher._flow.batches == 0)
            assert server.ledger().requests == before + requests
        assert repr(publisher._flow) == "<FlowController 0 batches, 0 messages, 0 B out>"
        callers.close()


def test_permits_of_those_who_cancel_come_back() -> None:
    """A shared request that its callers gave up one by one frees all that it held."""
    with (
        serving(lambda record: None if record.messages[0].data == b"warm" else NEVER) as server,
        HedgingPublisher(TOPIC, UNHURRIED, flow_control=EXACTLY) as publisher,
    ):
        callers = Callers(publisher)
        with held_up(publisher):
            futures = callers.publish()
        server.wait_for(lambda ledger: ledger.open == 1, timeout=PATIENCE)
        for future in futures:
            assert future.cancel()
        all_ended(server, THREADS + 1)
        eventually(lambda: publisher._flow.batches == 0)
        server.script = None
        with held_up(publisher):
            futures = callers.publish()
        assert [future.result(PATIENCE).messages for future in futures] == [1] * THREADS
        callers.close()
