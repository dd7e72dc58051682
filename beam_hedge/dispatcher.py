"""Where a batch is handed to the engine's thread: its attempts begin, and their result becomes its future's."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

from beam_hedge.attempts import BatchAttempts
from beam_hedge.outcome_log import OutcomeLog
from beam_hedge.settings import HedgingSettings, seconds

if TYPE_CHECKING:
    import concurrent.futures

    from beam_hedge.attempts import Policy
    from beam_hedge.batch import Batch
    from beam_hedge.engine import Engine
    from beam_hedge.errors import PublishError
    from beam_hedge.flow_control import FlowController
    from beam_hedge.outcome import PublishOutcome
    from beam_hedge.publish_futures import PublishFutures
    from beam_hedge.tracing import PublishTrace

    Future = concurrent.futures.Future[PublishOutcome]


_logger = logging.getLogger(__name__)


class Dispatcher:
    """Starts batches on the engine's thread and settles what comes of them.

    Args:
        policy: What the batches share.
        engine: Whose thread it is.
        flow: Gets a batch's permits back when its last attempt has ended.
        futures: Where the batches' futures are.
    """

    def __init__(self, policy: Policy, engine: Engine, flow: FlowController, futures: PublishFutures) -> None:
        self._policy = policy
        self._engine = engine
        self._flow = flow
        self._futures = futures
        settings = policy.settings or HedgingSettings()
        self._log = OutcomeLog(seconds(settings.hedge_delay), policy.bucket)

    def start(
        self, future: Future, batch: Batch, accepted: float, start_time_ns: int, trace: PublishTrace | None
    ) -> None:
        """Sends a batch's original; runs on the engine's thread."""
        attempts = BatchAttempts(
            self._policy,
            batch,
            accepted=accepted,
            publish_start_time_ns=start_time_ns,
            on_outcome=functools.partial(self._settle, future, trace),
            on_ended=functools.partial(self._flow.release, batch.messages, len(batch.request)),
            trace=trace,
        )
        # Called at once if the future has been cancelled by now.
        future.add_done_callback(functools.partial(self._cancel, attempts))
        attempts.start()

    def _cancel(self, attempts: BatchAttempts, future: Future) -> None:
        if future.cancelled() and self._engine.alive:
            self._engine.submit(attempts.cancel)

    def _settle(
        self, future: Future, trace: PublishTrace | None, result: PublishOutcome | PublishError | None
    ) -> None:
        self._futures.settle(future, result)
        try:
            if result is not None:
                self._log.note(result)
            if trace is not None:
                trace.end(result)
        except Exception:  # a log handler or a span processor of the program's must not stop the engine's work
            _logger.exception("telling of a publish outcome failed")
