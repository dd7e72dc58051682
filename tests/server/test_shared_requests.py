"""Threads that wait for each batch, found waiting together: one request, and to each its own outcome."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from beam_hedge import HedgingPublisher, HedgingSettings, PublishError, PublishOutcome
from beam_hedge.testing import NEVER, Reply
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, all_ended, eventually, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

THREADS = 8
BAD = b"bad"


class Waiters:
    """Threads that have each published a batch, waited for it, and publish the next one together.

    Attributes:
        publisher: Where they publish.
    """

    def __init__(self, publisher: HedgingPublisher) -> None:
        self.publisher = publisher
        self._pool = ThreadPoolExecutor(THREADS)
        self._together = threading.Barrier(THREADS)
        for future in self._on_each(lambda _number: publisher.publish([b"warm"]).result(PATIENCE)):
            future.result(PATIENCE)

    def publish(self, messages: Callable[[int], list[bytes]]) -> list[Future[PublishOutcome]]:
        """Has each thread publish while the engine is held up; returns their futures."""
        go = threading.Event()
        self.publisher._engine.submit(go.wait, PATIENCE)
        futures = self._on_each(lambda number: self.publisher.publish(messages(number)))
        found = [future.result(PATIENCE) for future in futures]
        go.set()
        return found

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown()

    def _on_each(self, work: Callable[[int], Any]) -> list[Future[Any]]:
        def run(number: int) -> Any:
            # No thread takes a second turn before all have had their first.
            self._together.wait(PATIENCE)
            return work(number)

        return [self._pool.submit(run, number) for number in range(THREADS)]


@contextmanager
def waiters(publisher: HedgingPublisher) -> Iterator[Waiters]:
    """Starts such threads."""
    started = Waiters(publisher)
    try:
        yield started
    finally:
        started.close()


def of_number(number: int) -> list[bytes]:
    """Returns a thread's messages: as many as tell them apart."""
    return [b"%d-%d" % (number, part) for part in range(number % 3 + 1)]


def after_warming(*replies: Any) -> Callable[[Any], Any]:
    """Answers the first requests of each thread, and those that follow as told, in their order."""
    left = list(replies)

    def script(record: Any) -> Any:
        if record.messages[0].data == b"warm" or not left:
            return None
        return left.pop(0)

    return script


def test_each_caller_gets_the_ids_of_its_own_messages() -> None:
    """Eight bundles that wait together cost one request, and none of them can tell."""
    with serving() as server, HedgingPublisher(TOPIC, UNHURRIED) as publisher, waiters(publisher) as threads:
        before = server.ledger().requests
        outcomes = [future.result(PATIENCE) for future in threads.publish(of_number)]
        assert server.ledger().requests == before + 1
        stored = {message.message_id: message.data for message in server.messages(TOPIC)}
    for outcome in outcomes:
        data = [stored[message_id] for message_id in outcome.message_ids]
        assert data in [of_number(number) for number in range(THREADS)]
        assert outcome.messages == len(data)
    assert len({outcome.message_ids for outcome in outcomes}) == THREADS
    assert sum(not outcome.shared for outcome in outcomes) == 1


def test_a_hedge_is_counted_once() -> None:
    """A request that is late is hedged once, whoever is in it, and earns one refill."""
    settings = HedgingSettings(hedge_delay=0.1, initial_tokens=5)
    script = after_warming(NEVER, None)
    with (
        serving(script) as server,
        HedgingPublisher(TOPIC, settings) as publisher,
        waiters(publisher) as threads,
    ):
        tokens = publisher.token_bucket.milli_tokens
        outcomes = [future.result(PATIENCE) for future in threads.publish(of_number)]
        assert sum(outcome.hedges for outcome in outcomes) == 1
        assert sum(outcome.winner > 0 for outcome in outcomes) == 1
        assert publisher.token_bucket.milli_tokens == tokens - 1000 + 100
        assert server.ledger().hedges == 1


def test_only_the_one_to_blame_is_refused() -> None:
    """A message that the service refuses costs its own caller an error, and the others one more request."""

    def script(record: Any) -> Any:
        data = [message.data for message in record.messages]
        return Reply(status=grpc.StatusCode.INVALID_ARGUMENT, details="bad") if BAD in data else None

    with (
        serving(script) as server,
        HedgingPublisher(TOPIC, UNHURRIED) as publisher,
        waiters(publisher) as threads,
    ):
        before = server.ledger().requests
        futures = threads.publish(lambda number: [BAD] if number == 3 else of_number(number))
        results = [future.exception(PATIENCE) or future.result() for future in futures]
        requests = server.ledger().requests - before
        stored = [message.data for message in server.messages(TOPIC) if message.data != b"warm"]
    errors = [result for result in results if isinstance(result, PublishError)]
    assert [error.status for error in errors] == [grpc.StatusCode.INVALID_ARGUMENT]
    assert errors[0].messages == 1
    wanted = [data for number in range(THREADS) if number != 3 for data in of_number(number)]
    assert sorted(stored) == sorted(wanted)
    assert requests == 1 + THREADS
    # One of them tells of the request that all were in.
    assert sorted(result.attempts for result in results) == [1] * (THREADS - 1) + [2]  # type: ignore[union-attr]


@pytest.mark.parametrize("status", [grpc.StatusCode.NOT_FOUND, grpc.StatusCode.PERMISSION_DENIED])
def test_what_concerns_all_is_told_to_all(status: grpc.StatusCode) -> None:
    """A topic or a permission that is missing is not asked for once more by each caller."""
    script = after_warming(*[Reply(status=status, details="no")] * 99)
    with (
        serving(script) as server,
        HedgingPublisher(TOPIC, UNHURRIED) as publisher,
        waiters(publisher) as threads,
    ):
        before = server.ledger().requests
        futures = threads.publish(of_number)
        assert [future.exception(PATIENCE).status for future in futures] == [status] * THREADS  # type: ignore[union-attr]
        assert server.ledger().requests == before + 1


def test_a_caller_that_cancels_leaves_the_others_alone() -> None:
    """One bundle that fails takes no other bundle's messages with it; the last one to go ends the request."""
    release = threading.Event()
    script = after_warming(Reply(until=release), NEVER)
    with (
        serving(script) as server,
        HedgingPublisher(TOPIC, UNHURRIED) as publisher,
        waiters(publisher) as threads,
    ):
        before = server.ledger().requests
        futures = threads.publish(of_number)
        server.wait_for(lambda ledger: ledger.requests == before + 1, timeout=PATIENCE)
        assert futures[0].cancel()
        # Told at once, not when the others are.
        assert wait(futures[:1], PATIENCE).done
        release.set()
        assert all(isinstance(future.result(PATIENCE), PublishOutcome) for future in futures[1:])
        assert sum(not future.result().shared for future in futures[1:]) == 1
        futures = threads.publish(of_number)
        server.wait_for(lambda ledger: ledger.requests == before + 2, timeout=PATIENCE)
        assert all(future.cancel() for future in futures)
        all_ended(server, before + 2)
        eventually(lambda: publisher._flow.batches == 0)


def test_what_is_cancelled_while_it_waits_is_never_sent() -> None:
    """A bundle that has failed by the time the engine looks leaves nothing behind, not even permits."""
    with serving() as server, HedgingPublisher(TOPIC, UNHURRIED) as publisher:
        publisher.publish([b"warm"]).result(PATIENCE)
        go = threading.Event()
        publisher._engine.submit(go.wait, PATIENCE)
        future = publisher.publish([b"never"])
        assert future.cancel()
        go.set()
        assert wait([future], PATIENCE).done
        eventually(lambda: publisher._flow.batches == 0)
        assert [message.data for message in server.messages(TOPIC)] == [b"warm"]
