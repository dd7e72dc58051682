"""C11. Two attempts answered at the same moment: the batch had two outcomes, or paid two refills.

With a bucket that fills too fast the budget for hedges is no budget, and an outage doubles the user's traffic.
"""

from __future__ import annotations

import logging
import random
import threading
from collections import defaultdict
from concurrent.futures import wait
from functools import partial
from typing import TYPE_CHECKING

from beam_hedge import HedgingPublisher, HedgingSettings
from beam_hedge.testing import Reply
from tests.server.serving import PATIENCE, TOPIC, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    import pytest

    from beam_hedge import PublishOutcome
    from beam_hedge.testing import RequestRecord


class Published:
    """Batches, how often each came to its end, and what the bucket held at those moments."""

    def __init__(self, publisher: HedgingPublisher) -> None:
        self._publisher = publisher
        self._ends: dict[int, int] = defaultdict(int)
        self._futures: list[Future[PublishOutcome]] = []
        self.balances: list[int] = []

    def publish(self, batches: int) -> None:
        """Publishes batches all at once, and waits for them."""
        futures = []
        for number in range(len(self._futures), len(self._futures) + batches):
            futures.append(self._publisher.publish([b"%d" % number]))
            futures[-1].add_done_callback(partial(self._ended, number))
        assert not wait(futures, PATIENCE).not_done
        self._futures += futures
        # Callbacks run right after waiters are woken.
        self._publisher._flow.wait_idle(PATIENCE)

    def _ended(self, number: int, _: object) -> None:
        self._ends[number] += 1
        self.balances.append(self._publisher.token_bucket.milli_tokens)

    def check(self) -> list[PublishOutcome]:
        """Fails unless each batch ended once, and well; returns the outcomes."""
        assert dict(self._ends) == dict.fromkeys(range(len(self._futures)), 1)
        return [future.result(0) for future in self._futures]


def released_together() -> Callable[[RequestRecord], Reply]:
    """Makes a script that answers an original and its hedge at one moment: when the hedge arrives."""
    hedged: dict[bytes, threading.Event] = defaultdict(threading.Event)

    def script(record: RequestRecord) -> Reply:
        event = hedged[record.messages[0].data]
        if record.hedged_attempt_count:
            event.set()
        return Reply(until=event)

    return script


def test_500_batches_whose_attempts_answer_together(caplog: pytest.LogCaptureFixture) -> None:
    """Each batch has one outcome and pays one refill, whichever of its answers is seen first."""
    settings = HedgingSettings(hedge_delay=0.1, max_tokens=250, initial_tokens=200, refill_ratio=0.001)
    for _ in range(10):
        with serving(released_together()) as server, HedgingPublisher(TOPIC, settings) as publisher:
            published = Published(publisher)
            published.publish(50)
            outcomes = published.check()
            hedges = sum(outcome.hedges for outcome in outcomes)
            assert publisher.token_bucket.milli_tokens == 200_000 + 50 * 1 - hedges * 1_000
            assert hedges >= 50
            assert len({message.data for message in server.messages(TOPIC)}) == 50
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_1000_answers_around_the_hedge_delay(caplog: pytest.LogCaptureFixture) -> None:
    """Answers a millisecond before or after a hedge is due leave the bucket balanced and within its limits."""
    settings = HedgingSettings(hedge_delay=0.1, max_tokens=10, initial_tokens=5, refill_ratio=0.001)
    delays = random.Random(11)
    with (
        serving(lambda _: Reply(delay=0.1 + delays.uniform(-0.001, 0.001))) as server,
        HedgingPublisher(TOPIC, settings) as publisher,
    ):
        published = Published(publisher)
        for _ in range(10):
            published.publish(100)
        outcomes = published.check()
        hedges = sum(outcome.hedges for outcome in outcomes)
        assert publisher.token_bucket.milli_tokens == 5_000 + 1_000 * 1 - hedges * 1_000
    assert all(0 <= balance <= 10_000 for balance in published.balances)
    assert server.ledger().hedges <= hedges <= 6
    assert len({message.data for message in server.messages(TOPIC)}) == 1000
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
