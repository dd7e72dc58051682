"""One bundle: its batches on their way, and the wait for all of them."""

from __future__ import annotations

import concurrent.futures
import weakref
from collections import deque
from typing import TYPE_CHECKING

from beam_hedge.errors import PublishError
from beam_hedge.outcome import PublishOutcome

if TYPE_CHECKING:
    from beam_hedge.batch import Batch
    from beam_hedge.metrics import SinkMetrics
    from beam_hedge.publisher import HedgingPublisher

_Future = concurrent.futures.Future[PublishOutcome]


class Bundle:
    """The batches of one bundle that are out.

    If the bundle ends otherwise than by `finish`, all that is out is cancelled: by `cancel`, or when the
    bundle is garbage, since a runner may drop a DoFn without a word. Used on the bundle's thread only.

    Args:
        publisher: Where batches go.
        metrics: What counts their outcomes.
    """

    def __init__(self, publisher: HedgingPublisher, metrics: SinkMetrics) -> None:
        self._publisher = publisher
        self._metrics = metrics
        metrics.start_bundle()
        self._pending: deque[_Future] = deque()
        self.cancel = weakref.finalize(self, _cancel, self._pending)

    def publish(self, batch: Batch) -> _Future:
        """Sends a batch; waits while flow control says so, and counts what has come back meanwhile.

        Raises:
            PublishError: A batch of this bundle has failed.
        """
        future = self._publisher.publish_batch(batch)
        self._pending.append(future)
        while self._pending and self._pending[0].done():
            self._count(self._pending.popleft())
        return future

    def finish(self) -> None:
        """Waits for all batches and reports the bundle's metrics.

        Raises:
            PublishError: A batch has failed; the others are cancelled or published.
            EngineDiedError: The engine's thread ended.
        """
        concurrent.futures.wait(self._pending, return_when=concurrent.futures.FIRST_EXCEPTION)
        # A failed one first: those that are still out may be far from done.
        for future in sorted(self._pending, key=_has_failed, reverse=True):
            self._count(future)
        self._pending.clear()
        self._metrics.report(self._publisher.token_bucket.milli_tokens)

    def _count(self, future: _Future) -> None:
        try:
            outcome = future.result()
        except PublishError as error:
            self._metrics.add(error)
            self._metrics.report(self._publisher.token_bucket.milli_tokens)
            raise
        self._metrics.add(outcome)


def _has_failed(future: _Future) -> bool:
    return future.done() and future.exception() is not None


def _cancel(pending: deque[_Future]) -> None:
    for future in pending:
        future.cancel()
