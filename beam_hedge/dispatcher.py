"""Where batches are handed to the engine's thread, which finds what may share a request and sends it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from opentelemetry import context

from beam_hedge.callers import Callers
from beam_hedge.outcome_log import OutcomeLog
from beam_hedge.request import Request, Sender
from beam_hedge.settings import HedgingSettings, seconds
from beam_hedge.shared_request import Accepted, Group
from beam_hedge.tracing import PublishTrace

if TYPE_CHECKING:
    import concurrent.futures

    from beam_hedge.batch import Batch
    from beam_hedge.engine import Engine
    from beam_hedge.flow_control import FlowController, Permits
    from beam_hedge.outcome import PublishOutcome
    from beam_hedge.policy import Policy
    from beam_hedge.publish_futures import PublishFutures

    Future = concurrent.futures.Future[PublishOutcome]


class Dispatcher:
    """Takes batches on any thread and starts their requests on the engine's.

    Batches that are found waiting together, because their callers' threads were quicker than this one, may
    share a request; see `beam_hedge.shared_request.Group`. None is held back for that.

    Args:
        policy: What the batches share.
        engine: Whose thread it is.
        flow: Gets permits back.
        futures: Where the batches' futures are.
        tracing: Whether each batch is a span.
    """

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        flow: FlowController,
        futures: PublishFutures,
        *,
        tracing: bool,
    ) -> None:
        self._engine = engine
        self._futures = futures
        self._tracing = tracing
        # Filled by any thread, emptied by the engine's; each step of a deque is atomic.
        self._waiting: deque[Accepted] = deque()
        settings = policy.settings or HedgingSettings()
        log = OutcomeLog(seconds(settings.hedge_delay), policy.bucket)
        self._sender = Sender(policy, engine, Callers(futures, flow, log))

    def accept(self, batch: Batch, permits: Permits, *, may_share: bool) -> Future:
        """Takes a batch, from any thread.

        Args:
            batch: The batch.
            permits: What it holds of flow control; given back when its last attempt has ended.
            may_share: Whether it may share a request.

        Returns:
            The future of its outcome.

        Raises:
            EngineDiedError: The engine's thread has ended.
        """
        future = self._futures.open()
        try:
            trace = PublishTrace(batch, context.get_current()) if self._tracing else None
            self._waiting.append(Accepted(future, batch, permits, trace, may_share))
            self._engine.submit(self._start_next)
        except BaseException:
            # Also Ctrl-C. If it waits already, perhaps without a turn, whoever is next passes over it.
            future.cancel()
            self._futures.forget(future)
            raise
        return future

    def _start_next(self) -> None:
        # Called once for each batch that was accepted, so what is left here has its own turn.
        group: Group | None = None
        while self._waiting:
            accepted = self._waiting[0]
            if accepted.future.cancelled():
                self._sender.callers.drop(accepted)
            elif group is None:
                group = Group(accepted)
            elif not group.add(accepted, self._sender.out):
                break
            self._waiting.popleft()
        if group is not None:
            Request(self._sender, group.members).send()
