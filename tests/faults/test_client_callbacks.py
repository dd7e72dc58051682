"""Callbacks of futures raise, or publish again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from beam_hedge import HedgingPublisher
from tests.faults.publishing import RETRY, Caller, stored
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, held, serving

if TYPE_CHECKING:
    from concurrent.futures import Future

    from beam_hedge import PublishOutcome
    from tests.faults.row import Matrix

SECTION = "The program that publishes"
MESSAGES = 50


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_callback_raises(error: type[BaseException], matrix: Matrix) -> None:
    """A callback's error is the callback's: this batch and all others are published."""

    def callback(_: Future[PublishOutcome]) -> None:
        raise error("from a callback")

    with serving() as server, HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher:
        caller = Caller(publisher)
        with held(server):
            for future in caller.publish_each(MESSAGES):
                future.add_done_callback(callback)
        caller.wait()
        caller.publish_each(MESSAGES, "later")
        caller.wait()
    row = caller.row(matrix, f"callbacks raise {error.__name__}", section=SECTION, stored=stored(server))
    assert (row.acknowledged, row.duplicated) == (2 * MESSAGES, 0)


def test_a_callback_publishes_again(matrix: Matrix) -> None:
    """A callback may publish: each answer brings the next message, on the engine's own thread."""
    ended = threading.Event()
    with serving() as server, HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher:
        caller = Caller(publisher)

        def publish_next(number: int) -> None:
            if number == MESSAGES:
                ended.set()
            else:
                future = caller.publish(b"message %d" % number)
                future.add_done_callback(lambda _: publish_next(number + 1))

        publish_next(0)
        assert ended.wait(PATIENCE)
    row = caller.row(matrix, "each callback publishes the next message", section=SECTION, stored=stored(server))
    assert (row.acknowledged, row.duplicated) == (MESSAGES, 0)
