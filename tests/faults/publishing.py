"""A caller that publishes while something goes wrong, and takes down what it is told of each message."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import wait
from typing import TYPE_CHECKING

from beam_hedge import BeamHedgeError, PublishError, RetrySettings
from tests.server.serving import PATIENCE, TOPIC, eventually

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from beam_hedge import HedgingPublisher, HedgingSettings, PublishOutcome
    from beam_hedge.testing import LocalPubSub, Reply, RequestRecord
    from tests.faults.row import Matrix, Row

# Retries so soon and so long that an outage of seconds is over within them, on a slow machine too.
RETRY = RetrySettings(initial_retry_delay=0.02, retry_delay_multiplier=2, max_retry_delay=0.1)

# A bound for what takes a fraction of a second: it ends a test of a library that does not recover.
RECOVERY = PATIENCE


class FirstTry:
    """A script that gives the first call with a message one reply, and later ones the usual answer."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._lock = threading.Lock()
        self._calls: Counter[bytes] = Counter()

    def __call__(self, record: RequestRecord) -> Reply | None:
        """Answers a call."""
        data = record.messages[0].data
        with self._lock:
            self._calls[data] += 1
            return self._reply if self._calls[data] == 1 else None


class Caller:
    """Publishes messages, one a batch unless said otherwise, and keeps the books.

    Safe for concurrent use: each step is one of a dict.

    Args:
        publisher: Where it publishes.

    Attributes:
        sent: The messages of each batch, by its future.
    """

    def __init__(self, publisher: HedgingPublisher) -> None:
        self._publisher = publisher
        self.sent: dict[Future[PublishOutcome], list[bytes]] = {}

    def publish(self, *messages: bytes) -> Future[PublishOutcome]:
        """Publishes one batch."""
        future = self._publisher.publish(list(messages))
        self.sent[future] = list(messages)
        return future

    def publish_each(self, number: int, name: str = "message") -> list[Future[PublishOutcome]]:
        """Publishes so many batches of one message each."""
        return [self.publish(b"%s %d" % (name.encode(), each)) for each in range(number)]

    def wait(self, patience: float = PATIENCE) -> None:
        """Waits until the caller was told of all; what it was not told of after that time is lost."""
        wait(list(self.sent), patience)

    def recover(self, since: float) -> float:
        """Waits for all, then until a new message goes through at its first attempt.

        Args:
            since: When the fault ended, in monotonic seconds.

        Returns:
            How long that took, in seconds. The new messages are none of the books'.
        """
        self.wait()
        eventually(lambda: self._publisher.publish([b"as before"]).result(PATIENCE).attempts == 1)
        recovery = time.monotonic() - since
        assert recovery < RECOVERY
        return recovery

    @property
    def outcomes(self) -> list[PublishOutcome]:
        """The outcomes of the batches that were published, in the order of publishing."""
        return [future.result() for future in self.sent if future.done() and not _error(future)]

    @property
    def errors(self) -> list[PublishError]:
        """The errors of the batches that were not."""
        errors = [_error(future) for future in self.sent if future.done()]
        return [error for error in errors if isinstance(error, PublishError)]

    @property
    def hedges(self) -> int:
        """How many hedges the outcomes and errors tell of."""
        return sum(each.hedges for each in self.outcomes) + sum(each.hedges for each in self.errors)

    def row(
        self,
        matrix: Matrix,
        fault: str,
        *,
        section: str,
        stored: Sequence[bytes],
        refused: Sequence[bytes] = (),
        recovery: float | None = None,
    ) -> Row:
        """Accounts for all messages. To be called when nothing is on its way any more.

        Args:
            matrix: The matrix.
            fault: What went wrong.
            section: The table that the row belongs to.
            stored: What the service holds.
            refused: What `publish` raised for, so that there was no future.
            recovery: Seconds from the end of the fault until all was as before.

        Returns:
            The row.
        """
        acknowledged: list[bytes] = []
        failed: list[bytes] = []
        for future, messages in self.sent.items():
            if future.done():
                (failed if _error(future) else acknowledged).extend(messages)
        return matrix.row(
            fault,
            section=section,
            inputs=[*refused, *(message for messages in self.sent.values() for message in messages)],
            acknowledged=acknowledged,
            failed=[*refused, *failed],
            stored=stored,
            hedges=self.hedges,
            recovery=recovery,
        )


def stored(server: LocalPubSub) -> list[bytes]:
    """Returns what a server holds. To be called when nothing is on its way any more."""
    return [message.data for message in server.messages(TOPIC)]


def budget(settings: HedgingSettings, server: LocalPubSub) -> float:
    """Returns the most hedges that a new publisher may have sent: what it had at first and what it earned."""
    return settings.initial_tokens + settings.refill_ratio * server.ledger().answered


def lasts(seconds: float) -> None:
    """Lets a fault go on: this is how long it is, and nothing is waited for."""
    threading.Event().wait(seconds)


def _error(future: Future[PublishOutcome]) -> BaseException | None:
    error = future.exception(0)
    assert error is None or isinstance(error, BeamHedgeError), error
    return error
