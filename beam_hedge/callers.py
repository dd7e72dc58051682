"""What callers of a publisher are owed: an outcome, a line in the log, the end of a span, their permits."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from beam_hedge.last_resort import log_exception

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beam_hedge.errors import PublishError
    from beam_hedge.flow_control import FlowController, Permits
    from beam_hedge.outcome import PublishOutcome
    from beam_hedge.outcome_log import OutcomeLog
    from beam_hedge.publish_futures import PublishFutures
    from beam_hedge.shared_request import Accepted

_logger = logging.getLogger(__name__)


class Callers:
    """Tells callers what became of their batches. Used on the engine's thread.

    Args:
        futures: Where the batches' futures are.
        flow: Gets permits back.
        log: Notes outcomes.
    """

    def __init__(self, futures: PublishFutures, flow: FlowController, log: OutcomeLog) -> None:
        self._futures = futures
        self._flow = flow
        self._log = log

    def claim(self, accepted: Accepted) -> bool:
        """Returns whether the caller wants a result. It can cancel no more then, and `tell` must follow."""
        if self._futures.claim(accepted.future):
            return True
        self._end_trace(accepted, None)
        return False

    def drop(self, accepted: Accepted) -> None:
        """Gives up a batch that its caller cancelled before it was sent."""
        self.claim(accepted)
        self._flow.release(accepted.permits)

    def tell(self, accepted: Accepted, result: PublishOutcome | PublishError) -> None:
        """Gives a caller that was claimed its result."""
        self._futures.settle(accepted.future, result)
        if not result.shared:
            try:
                self._log.note(result)
            except BaseException:  # noqa: BLE001 - a log handler of the program's must not stop the engine's work
                log_exception(_logger, "telling of a publish outcome failed")
        self._end_trace(accepted, result)

    def release(self, permits: Iterable[Permits]) -> None:
        """Gives permits back."""
        for each in permits:
            self._flow.release(each)

    def _end_trace(self, accepted: Accepted, result: PublishOutcome | PublishError | None) -> None:
        if accepted.trace is not None:
            try:
                accepted.trace.end(result)
            except BaseException:  # noqa: BLE001 - nor must a span processor
                log_exception(_logger, "ending the span of a batch failed")
