"""Where batches are handed to the engine's thread: attempts begin, and their result becomes the futures'."""

from __future__ import annotations

import functools
import logging
from collections import Counter, deque
from typing import TYPE_CHECKING

import grpc
from opentelemetry import context

from beam_hedge.attempts import BatchAttempts
from beam_hedge.errors import PublishError
from beam_hedge.outcome_log import OutcomeLog
from beam_hedge.retry import is_retryable
from beam_hedge.settings import HedgingSettings, seconds
from beam_hedge.shared_request import Accepted, Group, share_out, with_earlier
from beam_hedge.tracing import PublishTrace

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Sequence

    from beam_hedge.batch import Batch
    from beam_hedge.engine import Engine
    from beam_hedge.flow_control import FlowController
    from beam_hedge.outcome import PublishOutcome
    from beam_hedge.policy import Policy
    from beam_hedge.publish_futures import PublishFutures

    Future = concurrent.futures.Future[PublishOutcome]

_logger = logging.getLogger(__name__)
# Statuses that say something of the topic and of the caller's rights, not of the messages.
_OF_THE_TOPIC = (
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
)


class Dispatcher:
    """Starts batches on the engine's thread and settles what comes of them.

    Batches that are found waiting together, because their callers' threads were quicker than this one, may
    share a request; see `beam_hedge.shared_request.Group`. None is held back for that.

    Args:
        policy: What the batches share.
        engine: Whose thread it is.
        flow: Gets a batch's permits back when its last attempt has ended.
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
        self._policy = policy
        self._engine = engine
        self._flow = flow
        self._futures = futures
        self._tracing = tracing
        # Filled by any thread, emptied by the engine's; each step of a deque is atomic.
        self._waiting: deque[Accepted] = deque()
        # By thread. One whose batches have all come back stays, with 0.
        self._out: Counter[int] = Counter()
        settings = policy.settings or HedgingSettings()
        self._log = OutcomeLog(seconds(settings.hedge_delay), policy.bucket)

    def accept(self, batch: Batch, *, may_share: bool) -> Future:
        """Takes a batch that has its permits, from any thread.

        Args:
            batch: The batch.
            may_share: Whether it may share a request.

        Returns:
            The future of its outcome.

        Raises:
            EngineDiedError: The engine's thread has ended.
        """
        future = self._futures.open()
        try:
            trace = PublishTrace(batch, context.get_current()) if self._tracing else None
            self._waiting.append(Accepted(future, batch, trace, may_share))
            self._engine.submit(self._start_next)
        except BaseException:
            if self._futures.forget(future):
                self._flow.release(batch.messages, len(batch.request))
            raise
        return future

    def _start_next(self) -> None:
        # Called once for each batch that was accepted, so what is left here has its own turn.
        group: Group | None = None
        while self._waiting:
            accepted = self._waiting[0]
            if accepted.future.cancelled():
                self._tell(accepted.future, accepted.trace, None)
                self._release([_permits(accepted)])
            elif group is None:
                group = Group(accepted)
            elif not group.add(accepted, self._out):
                break
            self._waiting.popleft()
        if group is not None:
            self._send(group)

    def _send(self, group: Group, earlier: PublishError | None = None) -> None:
        members = group.members
        permits = [_permits(each) for each in members]
        # Those whose callers have neither a result nor lost interest. Holds no batch: callers keep futures.
        wanted = {each.future for each in members}
        attempts = BatchAttempts(
            self._policy,
            group.join(),
            accepted=members[0].at,
            publish_start_time_ns=members[0].start_time_ns,
            on_outcome=functools.partial(self._settle, members, wanted, permits, earlier),
            on_ended=functools.partial(self._release, permits),
            trace=members[0].trace,
        )
        for each in members:
            self._out[each.thread] += 1
            # Called at once if the future has been cancelled by now.
            each.future.add_done_callback(functools.partial(self._cancel, attempts, wanted, each.trace))
        attempts.start()

    def _cancel(
        self, attempts: BatchAttempts, wanted: set[Future], trace: PublishTrace | None, future: Future
    ) -> None:
        if future.cancelled() and self._engine.alive:
            self._engine.submit(self._cancelled, attempts, wanted, trace, future)

    def _cancelled(
        self, attempts: BatchAttempts, wanted: set[Future], trace: PublishTrace | None, future: Future
    ) -> None:
        if future in wanted:
            wanted.discard(future)
            self._tell(future, trace, None)
            if not wanted:
                attempts.cancel()

    def _release(self, permits: list[tuple[int, int]]) -> None:
        for messages, size in permits:
            self._flow.release(messages, size)

    def _settle(
        self,
        members: Sequence[Accepted],
        wanted: set[Future],
        permits: list[tuple[int, int]],
        earlier: PublishError | None,
        result: PublishOutcome | PublishError | None,
    ) -> None:
        for each in members:
            self._out[each.thread] -= 1
        if result is None:
            return
        if earlier is not None:
            result = with_earlier(result, earlier)
        shares = zip(members, share_out(members, wanted, result), strict=True)
        told = [(each, share) for each, share in shares if each.future in wanted]
        wanted.clear()
        if len(members) > 1 and isinstance(result, PublishError) and not _is_everybodys(result):
            # One of the batches is to blame: each gets a request of its own, with the permits that it has.
            for each, share in told:
                permits.remove(_permits(each))
                self._send(Group(each), None if share.shared else result)
            return
        for each, share in told:
            self._tell(each.future, each.trace, share)

    def _tell(
        self, future: Future, trace: PublishTrace | None, result: PublishOutcome | PublishError | None
    ) -> None:
        self._futures.settle(future, result)
        try:
            if result is not None and not result.shared:
                self._log.note(result)
            if trace is not None:
                trace.end(result)
        except Exception:  # a log handler or a span processor of the program's must not stop the engine's work
            _logger.exception("telling of a publish outcome failed")


def _permits(accepted: Accepted) -> tuple[int, int]:
    return accepted.batch.messages, len(accepted.batch.request)


def _is_everybodys(error: PublishError) -> bool:
    """Whether a request failed for a reason that no single batch in it can be to blame for."""
    return is_retryable(error.status, error.details) or error.status in _OF_THE_TOPIC
