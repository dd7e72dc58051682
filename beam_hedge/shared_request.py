"""Batches of several callers in one request: who may share, and what each caller is told of it."""

from __future__ import annotations

import dataclasses
import threading
import time
from typing import TYPE_CHECKING, Any

from beam_hedge.batch import Batch
from beam_hedge.outcome import PublishOutcome

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Collection, Mapping, Sequence

    from beam_hedge.errors import PublishError
    from beam_hedge.flow_control import Permits
    from beam_hedge.tracing import PublishTrace

# What google-cloud-pubsub batches by default: beyond that, a request of one's own costs hardly more.
MAX_MESSAGES = 100
MAX_BYTES = 1_000_000
# What a caller is told of attempts that another caller is told of.
_SHARED: dict[str, Any] = {
    "attempts": 1,
    "retries": 0,
    "hedges": 0,
    "hedges_failed": 0,
    "hedges_throttled": 0,
    "attempts_cancelled": 0,
    "refusals": (),
    "shared": True,
}


@dataclasses.dataclass(frozen=True, eq=False)
class Accepted:
    """A batch that `publish()` has accepted.

    Attributes:
        future: Where its outcome goes.
        batch: The batch.
        permits: What it holds of flow control.
        trace: What watches it, if anything.
        may_share: Whether it may share a request with batches of other threads.
        at: When it was accepted, in monotonic seconds. Default: now.
        start_time_ns: The same moment in nanoseconds since the epoch.
        thread: The caller's thread. Default: this one.
    """

    future: concurrent.futures.Future[PublishOutcome]
    batch: Batch
    permits: Permits
    trace: PublishTrace | None = None
    may_share: bool = False
    at: float = dataclasses.field(default_factory=time.monotonic)
    start_time_ns: int = dataclasses.field(default_factory=time.time_ns)
    thread: int = dataclasses.field(default_factory=threading.get_ident)


class Group:
    """The batches of one request.

    Only threads whose earlier batches have all come back share a request, each with one batch: they wait for
    each batch, as small bundles do. One that publishes several before it waits has chosen what goes together.

    Args:
        first: The first batch, which may be the only one.

    Attributes:
        members: The batches, in the order in which they were accepted.
    """

    def __init__(self, first: Accepted) -> None:
        self.members = [first]
        self._topic = first.batch.topic
        self._threads = {first.thread}
        self._messages = first.batch.messages
        self._bytes = len(first.batch.request)

    def add(self, other: Accepted, out: Mapping[int, int]) -> bool:
        """Takes one more batch if it may share this request; returns whether it did.

        Args:
            other: The batch.
            out: How many batches each thread that has published has out.
        """
        messages, size = self._messages + other.batch.messages, self._bytes + len(other.batch.request)
        if (
            not (other.may_share and self.members[0].may_share)
            or other.batch.topic != self._topic
            or other.thread in self._threads
            or out.get(other.thread) != 0
            or out.get(self.members[0].thread) != 0
            or messages > MAX_MESSAGES
            or size > MAX_BYTES
        ):
            return False
        self.members.append(other)
        self._threads.add(other.thread)
        self._messages, self._bytes = messages, size
        return True


def join(members: Sequence[Accepted]) -> Batch:
    """Makes one batch of several for the same topic."""
    batches = [each.batch for each in members]
    if len(batches) == 1:
        return batches[0]
    # Encoded messages can be strung together: repeated fields add up, and of the topics the last counts.
    request = b"".join([batch.request for batch in batches])
    return Batch(batches[0].topic, request, sum(batch.messages for batch in batches))


def share_out(
    group: Sequence[Accepted],
    wanted: Collection[concurrent.futures.Future[PublishOutcome]],
    result: PublishOutcome | PublishError,
) -> list[PublishOutcome | PublishError]:
    """Returns what each of a request's callers is told: of its own messages, and of the attempts they shared.

    The first whose caller still wants to know is told of all attempts, the others of one, so that sums over
    outcomes count nothing twice.
    """
    if len(group) == 1:
        return [result]
    told: list[PublishOutcome | PublishError] = []
    counted, start = False, 0
    for each in group:
        own: dict[str, Any] = {"messages": each.batch.messages, "request_bytes": len(each.batch.request)}
        if counted:
            own |= _SHARED
        counted = counted or each.future in wanted
        if isinstance(result, PublishOutcome):
            own["message_ids"] = result.message_ids[start : start + each.batch.messages]
            own["latency"] = result.latency - (each.at - group[0].at)
            own["winner"] = 0 if "shared" in own else result.winner
        told.append(_replace(result, own))
        start += each.batch.messages
    return told


def with_earlier(result: PublishOutcome | PublishError, earlier: PublishError) -> PublishOutcome | PublishError:
    """Adds the attempts of a refused request that the batch was in before it got one of its own."""
    added = {
        "attempts": result.attempts + earlier.attempts,
        "retries": result.retries + earlier.attempts - earlier.hedges,
        "hedges": result.hedges + earlier.hedges,
        "hedges_failed": result.hedges_failed + earlier.hedges_failed,
        "hedges_throttled": max(result.hedges_throttled, earlier.hedges_throttled),
        "attempts_cancelled": result.attempts_cancelled + earlier.attempts_cancelled,
        "refusals": earlier.refusals + result.refusals,
    }
    return _replace(result, added)


def _replace(result: PublishOutcome | PublishError, fields: dict[str, Any]) -> PublishOutcome | PublishError:
    if isinstance(result, PublishOutcome):
        return dataclasses.replace(result, **fields)
    return result.replace(**fields)
