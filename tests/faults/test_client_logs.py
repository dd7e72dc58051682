"""The program's log handlers misbehave."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from beam_hedge import HedgingPublisher, HedgingSettings, outcome_log
from beam_hedge.testing import Reply
from tests.faults.publishing import RETRY, Caller, stored
from tests.server.serving import TOPIC, UNHURRIED, eventually, held, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from beam_hedge import PublishOutcome
    from tests.faults.row import Matrix

SECTION = "The program that publishes"
THREADS = 8
MESSAGES = 40
# No token, so that each batch that is late is told of in the log.
WITHOUT_TOKENS = HedgingSettings(hedge_delay=0.1, refill_ratio=0.001)
LATE = Reply(delay=0.4)
# Many times what a late batch takes.
_PATIENCE = 10


class _Handler(logging.Handler):
    """Does something with each line; for a test that wants a handler that does the wrong thing."""

    def __init__(self, do: Callable[[], object]) -> None:
        super().__init__()
        self._do = do
        self.lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Takes a line."""
        del record
        self.lines += 1
        self._do()


def _publish_late(
    handler: _Handler, logger: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[Caller, list[bytes]]:
    """Has several threads publish, each batch with a line in the log; returns the books and what is stored."""
    # Otherwise there is one line a minute.
    monkeypatch.setattr(outcome_log, "INTERVAL", 0.0)
    monkeypatch.setattr(logging.getLogger(logger), "handlers", [handler])
    with (
        serving(LATE) as server,
        HedgingPublisher(TOPIC, WITHOUT_TOKENS, retry_settings=RETRY) as publisher,
        ThreadPoolExecutor(THREADS) as pool,
    ):
        caller = Caller(publisher)

        def publish(thread: int) -> None:
            # One after the other, so that batches of several threads share requests.
            for number in range(MESSAGES // THREADS):
                caller.publish(b"message %d of %d" % (number, thread)).exception(_PATIENCE)

        list(pool.map(publish, range(THREADS)))
        caller.wait()
    return caller, stored(server)


def _raise() -> None:
    raise OSError("no space left for the log")


@pytest.mark.parametrize("logger", ["beam_hedge", ""], ids=["ours", "root"])
def test_a_log_handler_raises(logger: str, matrix: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that cannot be written costs its lines, and nothing else."""
    handler = _Handler(_raise)
    caller, found = _publish_late(handler, logger, monkeypatch)
    assert handler.lines
    where = "the library's logger" if logger else "the root logger"
    row = caller.row(matrix, f"a log handler of {where} raises at each line", section=SECTION, stored=found)
    assert (row.acknowledged, row.duplicated) == (MESSAGES, 0)


def test_a_callback_and_the_log_raise(matrix: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    """A callback's error that cannot be logged either is still no other batch's."""

    def callback(_: Future[PublishOutcome]) -> None:
        raise ValueError("from a callback")

    monkeypatch.setattr(logging.getLogger(), "handlers", [_Handler(_raise)])
    with serving() as server, HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher:
        caller = Caller(publisher)
        with held(server):
            for future in caller.publish_each(MESSAGES):
                future.add_done_callback(callback)
        caller.wait(_PATIENCE)
    row = caller.row(
        matrix,
        "callbacks raise, and so does the log handler that is to tell of it",
        section=SECTION,
        stored=stored(server),
    )
    assert (row.acknowledged, row.duplicated) == (MESSAGES, 0)


def test_a_log_handler_publishes_again(matrix: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that goes to Pub/Sub through the same publisher, whose delays it tells of, ends by itself."""
    monkeypatch.setattr(outcome_log, "INTERVAL", 0.0)
    with (
        serving(LATE) as server,
        HedgingPublisher(TOPIC, WITHOUT_TOKENS, retry_settings=RETRY) as publisher,
    ):
        caller = Caller(publisher)
        # Each line of the log is one more late batch, of which there is a line.
        handler = _Handler(lambda: handler.lines <= 20 and caller.publish(b"line %d" % handler.lines))
        monkeypatch.setattr(logging.getLogger("beam_hedge"), "handlers", [handler])
        caller.publish_each(MESSAGES)
        eventually(lambda: handler.lines >= 20 and all(future.done() for future in list(caller.sent)))
        caller.wait()
    row = caller.row(
        matrix,
        "a log handler publishes each line with the publisher that it tells of",
        section=SECTION,
        stored=stored(server),
    )
    assert (row.acknowledged, row.duplicated) == (MESSAGES + 20, 0)
