"""Messages that are out with subscribers: until when, and how many each of them holds."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Flow:
    """What one stream may hold unacknowledged, and what it holds; without limits it may hold anything.

    Attributes:
        max_messages: The most messages.
        max_bytes: The size, in bytes, from which on no further message follows.
        ack_deadline: Seconds that this stream has to acknowledge a message; None: as the subscription says.
        messages: The messages it holds.
        bytes: Their size.
    """

    max_messages: float = math.inf
    max_bytes: float = math.inf
    ack_deadline: float | None = None
    messages: int = 0
    bytes: int = 0

    def has_room(self) -> bool:
        """Returns whether one more message may go out."""
        return self.messages < self.max_messages and self.bytes < self.max_bytes


@dataclass
class Lease:
    """A message that is out with a subscriber until its deadline.

    Attributes:
        ack_id: The name of this delivery.
        message: The message, a raw protobuf with its id.
        position: The place of the message in its topic.
        deadline: When it comes again, in seconds of the store's clock.
        flow: The account of the stream that holds it.
    """

    ack_id: str
    message: Any
    position: int
    deadline: float
    flow: Flow


class Leases:
    """All leases of one subscription, which owns them and holds its lock around every use."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}
        self._deadlines: list[tuple[float, str]] = []
        self._deliveries: Counter[int] = Counter()

    def __len__(self) -> int:
        """Returns the number of messages that are out."""
        return len(self._leases)

    def __iter__(self) -> Iterator[Lease]:
        """Iterates over the leases in the order in which they were given."""
        return iter(list(self._leases.values()))

    def get(self, ack_id: str) -> Lease | None:
        """Returns the lease, or None if it is over."""
        return self._leases.get(ack_id)

    def give(self, message: Any, deadline: float, flow: Flow) -> Lease:
        """Leases a message until a time; each delivery of it has an ack id of its own."""
        position = int(message.message_id)
        self._deliveries[position] += 1
        ack_id = f"{position}-{self._deliveries[position]}"
        lease = self._leases[ack_id] = Lease(ack_id, message, position, deadline, flow)
        flow.messages += 1
        flow.bytes += message.ByteSize()
        self.extend(lease, deadline)
        return lease

    def extend(self, lease: Lease, deadline: float) -> None:
        """Gives a lease another deadline, later or earlier."""
        lease.deadline = deadline
        heapq.heappush(self._deadlines, (deadline, lease.ack_id))

    def end(self, ack_id: str, *, for_good: bool) -> Lease | None:
        """Ends and returns a lease, or returns None if it is over; `for_good`: it is not delivered again."""
        lease = self._leases.pop(ack_id, None)
        if lease is not None:
            lease.flow.messages -= 1
            lease.flow.bytes -= lease.message.ByteSize()
            if for_good:
                del self._deliveries[lease.position]
        return lease

    def next_deadline(self) -> float:
        """Returns the first time at which a lease may be over; infinite without leases."""
        return self._deadlines[0][0] if self._deadlines else math.inf

    def expired(self, now: float) -> Iterator[Lease]:
        """Yields the leases whose deadline has come; the caller ends each of them."""
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, ack_id = heapq.heappop(self._deadlines)
            lease = self._leases.get(ack_id)
            # Every extension adds an entry: only the one that holds the present deadline counts.
            if lease is not None and lease.deadline == deadline:
                yield lease
