"""One bundle: its batches on their way, and the wait for all of them."""

from __future__ import annotations

import concurrent.futures
import sys
from collections import deque
from typing import TYPE_CHECKING

from beam_hedge.errors import PublishError
from beam_hedge.isolate import is_refusal_of_a_message
from beam_hedge.outcome import PublishOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

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
        on_published: Called with each outcome and the batch's elements. Default: nothing.
        on_refused: Called with a refusal that one of the batch's messages can be to blame for, and with the
            batch's elements. Default: the refusal fails the bundle.
    """

    # One whose making is interrupted is deleted as well.
    _pending: deque[tuple[_Future, Sequence[Any]]] = deque()  # noqa: RUF012 - never filled

    def __init__(
        self,
        publisher: HedgingPublisher,
        metrics: SinkMetrics,
        on_published: Callable[[PublishOutcome, Sequence[Any]], None] | None = None,
        on_refused: Callable[[PublishError, Sequence[Any]], None] | None = None,
    ) -> None:
        self._pending = deque()
        self._publisher = publisher
        self._metrics = metrics
        self._on_published = on_published
        self._on_refused = on_refused
        self._is_empty = True
        self._may_share = False
        metrics.start_bundle()

    def __del__(self) -> None:
        # At the interpreter's end the engine's thread stands still, and takes what is out with it.
        if not sys.is_finalizing():
            self.cancel()

    def cancel(self) -> None:
        """Cancels all that is out."""
        for future, _elements in self._pending:
            future.cancel()

    def ends(self) -> None:
        """Notes that all elements are there: batches that come now may share a request with other bundles'.

        A bundle that has filled batches before has none that is worth it.
        """
        self._may_share = self._is_empty

    def publish(self, batch: Batch, elements: Sequence[Any] = ()) -> None:
        """Sends a batch; waits while flow control says so, and settles what has come back meanwhile.

        Args:
            batch: What to send.
            elements: What its messages were made of, for the callbacks.

        Raises:
            PublishError: A batch of this bundle has failed.
        """
        future = self._publisher.publish_batch(batch, may_share=self._may_share)
        self._is_empty = False
        self._pending.append((future, elements))
        while self._pending and self._pending[0][0].done():
            self._settle(*self._pending.popleft())

    def publish_now(self, batch: Batch) -> PublishOutcome:
        """Sends a batch and waits for it.

        Raises:
            PublishError: It has failed; the bundle has not.
        """
        future = self._publisher.publish_batch(batch)
        # If something else ends the wait, it stays there for `cancel`.
        self._pending.append((future, ()))
        try:
            outcome = future.result()
        except PublishError as error:
            self._pending.pop()
            self._metrics.add(error)
            raise
        self._pending.pop()
        self._metrics.add(outcome)
        return outcome

    def finish(self) -> None:
        """Waits for all batches and reports the bundle's metrics.

        Raises:
            PublishError: A batch has failed; the others are cancelled or published.
            EngineDiedError: The engine's thread ended.
        """
        # A copy: dealing with a refusal publishes.
        pending = [*self._pending]
        if len(pending) > 1:
            futures = [future for future, _elements in pending]
            concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
            # A failed one first: those that are still out may be far from done.
            pending.sort(key=_has_failed, reverse=True)
        for future, elements in pending:
            self._settle(future, elements)
        self._pending.clear()
        self._report()

    def _settle(self, future: _Future, elements: Sequence[Any]) -> None:
        try:
            outcome = future.result()
        except PublishError as error:
            self._metrics.add(error)
            if self._on_refused is not None and is_refusal_of_a_message(error):
                self._on_refused(error, elements)
                return
            self._metrics.add_failed_messages(error.messages)
            self._report()
            raise
        self._metrics.add(outcome)
        if self._on_published is not None:
            self._on_published(outcome, elements)

    def _report(self) -> None:
        publisher = self._publisher
        self._metrics.report(publisher.token_bucket.milli_tokens, publisher.connection_counts.take())


def _has_failed(pending: tuple[_Future, Sequence[Any]]) -> bool:
    future = pending[0]
    return future.done() and future.exception() is not None
