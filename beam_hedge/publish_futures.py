"""The futures of a publisher's batches, from acceptance to outcome."""

from __future__ import annotations

import concurrent.futures
import logging
from typing import TYPE_CHECKING

from beam_hedge.errors import EngineDiedError
from beam_hedge.last_resort import log_exception
from beam_hedge.outcome import PublishOutcome

if TYPE_CHECKING:
    from beam_hedge.errors import PublishError

    Future = concurrent.futures.Future[PublishOutcome]

_logger = logging.getLogger(__name__)


class PublishFutures:
    """Batches that are accepted and have no outcome yet.

    Safe for concurrent use without a lock: each change is one atomic step of a dict.
    """

    def __init__(self) -> None:
        self._open: dict[Future, bool] = {}

    def open(self) -> Future:
        """Returns the future of one more batch."""
        future: Future = concurrent.futures.Future()
        self._open[future] = True
        return future

    def forget(self, future: Future) -> bool:
        """Drops a future; returns whether it was still open."""
        return self._open.pop(future, False)

    def claim(self, future: Future) -> bool:
        """Closes a future; returns whether it is to get a result, because its caller has not cancelled it."""
        self.forget(future)
        return future.set_running_or_notify_cancel()

    def settle(self, future: Future, result: PublishOutcome | PublishError | EngineDiedError) -> None:
        """Gives a claimed future its outcome or error."""
        try:
            if isinstance(result, PublishOutcome):
                future.set_result(result)
            else:
                future.set_exception(result)
        except BaseException:  # noqa: BLE001 - a caller's callback must not end the engine, not even by SystemExit
            log_exception(_logger, "a callback of a publish future raised")

    def cancel_all(self) -> None:
        """Cancels all that are open."""
        for future in list(self._open):
            future.cancel()

    def fail_all(self) -> None:
        """Fails all that are open, because the engine died."""
        for future in list(self._open):
            if self.claim(future):
                self.settle(future, EngineDiedError())
