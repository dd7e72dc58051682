"""One subscription: what was delivered, what was acknowledged, what has to come again."""

from __future__ import annotations

import heapq
import math
from collections import deque
from typing import TYPE_CHECKING, Any

from beam_hedge.testing.leases import Leases
from beam_hedge.testing.refusal import invalid, not_found

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable

    from beam_hedge.testing.leases import Flow, Lease
    from beam_hedge.testing.messages import StoredRequest


MIN_ACK_DEADLINE = 10
MAX_ACK_DEADLINE = 600
# An answer ends with the message that reaches this size: clients of emulators take at most 4 MiB at once.
_ANSWER_BYTES = 1 << 20


class Subscription:
    """A subscription to one topic; it gets what is stored after it was made.

    Deliveries follow the order of storing. A message that was refused or not acknowledged in time comes again
    before newer ones; in an ordered subscription those of the same ordering key that went out after it come
    again as well. All methods take the lock of the store, which owns the subscription; waiting lets go of it.

    Args:
        name: The full name.
        topic_name: The full name of its topic.
        log: The requests that the topic holds; the topic appends to it under the same lock.
        changed: A condition on the lock of the store.
        clock: What tells the time in seconds.
        ack_deadline: Seconds that a subscriber has to acknowledge a message, 10 to 600.
        ordered: Whether messages with one ordering key stay in order when they come again.

    Raises:
        RefusedError: INVALID_ARGUMENT if `ack_deadline` is out of range.
    """

    def __init__(
        self,
        name: str,
        topic_name: str,
        log: list[StoredRequest],
        changed: threading.Condition,
        clock: Callable[[], float],
        *,
        ack_deadline: float = 10,
        ordered: bool = False,
    ) -> None:
        if not MIN_ACK_DEADLINE <= ack_deadline <= MAX_ACK_DEADLINE:
            raise invalid(
                f"ack_deadline_seconds must be {MIN_ACK_DEADLINE} to {MAX_ACK_DEADLINE}, got {ack_deadline:g}"
            )
        self.name = name
        self.topic_name = topic_name
        self.ack_deadline = ack_deadline
        self.ordered = ordered
        self._changed = changed
        self._clock = clock
        self._log = log
        self._next_request = len(log)
        self._new: deque[Any] = deque()
        self._again: list[tuple[int, Any]] = []
        self._leases = Leases()
        self._deleted = False

    def wake(self) -> None:
        """Has every waiting pull look again: there are new messages, or its call has ended."""
        with self._changed:
            self._changed.notify_all()

    def delete(self) -> None:
        """Ends the subscription; those who wait on it are told NOT_FOUND."""
        with self._changed:
            self._deleted = True
            self._changed.notify_all()

    def take(self, most: int, flow: Flow) -> list[Lease]:
        """Leases up to `most` messages that are ready now; may return none.

        Raises:
            RefusedError: NOT_FOUND if the subscription was deleted.
        """
        with self._changed:
            if self._deleted:
                raise not_found("subscription", self.name)
            now = self._clock()
            for lease in self._leases.expired(now):
                self._return(lease)
            seconds = self.ack_deadline if flow.ack_deadline is None else flow.ack_deadline
            leases: list[Lease] = []
            full = flow.bytes + _ANSWER_BYTES
            while len(leases) < most and flow.has_room() and flow.bytes < full:
                message = self._next_message()
                if message is None:
                    break
                leases.append(self._leases.give(message, now + seconds, flow))
            return leases

    def wait_and_take(self, most: int, flow: Flow, until: float, ended: Callable[[], bool]) -> list[Lease]:
        """Leases up to `most` messages, and waits for the first one.

        Args:
            most: The most messages to return.
            flow: The account of the stream or the pull.
            until: The clock's time at which to return with nothing; may be infinite.
            ended: Whether the call is over; looked at after each `wake()`.

        Returns:
            The leases; none if the time or the call is over.

        Raises:
            RefusedError: NOT_FOUND if the subscription was deleted.
        """
        with self._changed:
            while not ended():
                leases = self.take(most, flow)
                now = self._clock()
                if leases or now >= until:
                    return leases
                pause = min(until, self._leases.next_deadline()) - now
                self._changed.wait(None if math.isinf(pause) else pause)
            return []

    def acknowledge(self, ack_ids: Iterable[str]) -> None:
        """Ends leases for good; an id whose lease is over already is left alone."""
        with self._changed:
            for ack_id in ack_ids:
                self._leases.end(ack_id, for_good=True)
            self._changed.notify_all()

    def modify_deadline(self, ack_id: str, seconds: float) -> None:
        """Gives a lease `seconds` from now; with 0 the message comes again at once.

        Raises:
            RefusedError: INVALID_ARGUMENT if `seconds` is not 0 to 600.
        """
        if not 0 <= seconds <= MAX_ACK_DEADLINE:
            raise invalid(f"an ack deadline is 0 to {MAX_ACK_DEADLINE} seconds, got {seconds:g}")
        with self._changed:
            lease = self._leases.get(ack_id)
            if lease is None:
                return
            if seconds == 0:
                self._return(lease)
            else:
                self._leases.extend(lease, self._clock() + seconds)
            self._changed.notify_all()

    @property
    def unacknowledged(self) -> int:
        """The number of messages that were not acknowledged yet, delivered or not."""
        with self._changed:
            waiting = sum(request.count for request in self._log[self._next_request :])
            return waiting + len(self._new) + len(self._again) + len(self._leases)

    def wait_until_acknowledged(self, timeout: float) -> None:
        """Waits until all messages are acknowledged; raises `TimeoutError` after `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.unacknowledged == 0, timeout):
                raise TimeoutError(f"{self.unacknowledged} messages of {self.name} are not acknowledged")

    def _next_message(self) -> Any:
        if self._again:
            return heapq.heappop(self._again)[1]
        if not self._new and self._next_request < len(self._log):
            self._new.extend(self._log[self._next_request].to_protobuf())
            self._next_request += 1
        return self._new.popleft() if self._new else None

    def _return(self, lease: Lease) -> None:
        key = lease.message.ordering_key
        for other in self._leases if self.ordered and key else [lease]:
            if other.message.ordering_key == key and other.position >= lease.position:
                self._leases.end(other.ack_id, for_good=False)
                heapq.heappush(self._again, (other.position, other.message))
