"""One request on its way, with the batches of one caller or of several: its attempts, and who is told what."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc

from beam_hedge.attempts import BatchAttempts
from beam_hedge.errors import PublishError
from beam_hedge.retry import is_retryable
from beam_hedge.shared_request import join, share_out, with_earlier

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Collection, Sequence

    from beam_hedge.callers import Callers
    from beam_hedge.engine import Engine
    from beam_hedge.outcome import PublishOutcome
    from beam_hedge.policy import Policy
    from beam_hedge.shared_request import Accepted

    Future = concurrent.futures.Future[PublishOutcome]

# Statuses that say something of the topic and of the caller's rights, not of the messages.
_OF_THE_TOPIC = (
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
)


@dataclass(frozen=True, eq=False)
class Sender:
    """What the requests of a publisher share.

    Attributes:
        policy: What the attempts need.
        engine: Whose thread they run on.
        callers: Who is told of outcomes.
        out: How many batches each thread has out. One whose batches have all come back stays, with 0.
    """

    policy: Policy
    engine: Engine
    callers: Callers
    out: Counter[int] = field(default_factory=Counter)


class Request:
    """The attempts of one request and the callers who wait for it. Made and used on the engine's thread.

    Args:
        sender: What it shares with other requests.
        members: The batches that it carries, in the order in which they were accepted.
        deadline: When the total timeout ends, on the policy's clock. Default: it begins with the first send.
        earlier: A refusal of an earlier request, whose attempts are told with this one's.
    """

    def __init__(
        self,
        sender: Sender,
        members: Sequence[Accepted],
        *,
        deadline: float | None = None,
        earlier: PublishError | None = None,
    ) -> None:
        self._sender = sender
        self._members = members
        # Whose callers have neither a result nor lost interest.
        self._wanted = {each.future: each for each in members}
        self._permits = [each.permits for each in members]
        self._earlier = earlier
        self._attempts = BatchAttempts(
            sender.policy,
            join(members),
            accepted=members[0].at,
            publish_start_time_ns=members[0].start_time_ns,
            on_outcome=self._settle,
            on_ended=self._release,
            trace=members[0].trace,
        )
        self._deadline = deadline

    def send(self) -> None:
        """Sends the original."""
        for each in self._members:
            self._sender.out[each.thread] += 1
            # Called at once if the future has been cancelled by now.
            each.future.add_done_callback(self._future_done)
        self._attempts.start(self._deadline)

    def _future_done(self, future: Future) -> None:
        """Called by any thread."""
        engine = self._sender.engine
        if future.cancelled() and engine.alive:
            engine.submit(self._cancelled, future)

    def _cancelled(self, future: Future) -> None:
        accepted = self._wanted.pop(future, None)
        if accepted is not None:
            self._sender.callers.claim(accepted)
            if not self._wanted:
                self._attempts.cancel()

    def _settle(self, result: PublishOutcome | PublishError | None) -> None:
        members, wanted = self._members, self._wanted
        # Callers keep futures, which lead here: no batch may stay.
        self._members, self._wanted = (), {}
        for each in members:
            self._sender.out[each.thread] -= 1
        if result is None:
            return
        if self._earlier is not None:
            result = with_earlier(result, self._earlier)
        refused = result if isinstance(result, PublishError) and not _is_everybodys(result) else None
        if refused is not None and len(members) > 1:
            # One of the batches is to blame: each gets a request of its own.
            self._split(members, wanted, refused)
            return
        callers = self._sender.callers
        # One that was cancelled a moment ago is not the one who is told of the attempts.
        told = {each.future for each in members if each.future in wanted and callers.claim(each)}
        for each, share in zip(members, share_out(members, told, result), strict=True):
            if each.future in told:
                callers.tell(each, share)

    def _split(self, members: Sequence[Accepted], wanted: Collection[Future], refusal: PublishError) -> None:
        earlier: PublishError | None = refusal
        for each in members:
            # One that was cancelled a moment ago can be claimed no more, and is not sent again.
            if each.future not in wanted or (each.future.cancelled() and not self._sender.callers.claim(each)):
                continue
            # It keeps its permits, and what is left of its time.
            self._permits.remove(each.permits)
            Request(self._sender, [each], deadline=self._attempts.deadline, earlier=earlier).send()
            earlier = None

    def _release(self) -> None:
        self._sender.callers.release(self._permits)


def _is_everybodys(error: PublishError) -> bool:
    """Whether a request failed for a reason that no single batch in it can be to blame for."""
    return is_retryable(error.status, error.details) or error.status in _OF_THE_TOPIC
