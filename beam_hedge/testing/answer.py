"""How the server answers one publish call: check, store, wait, give ids."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import grpc

from beam_hedge.testing.limits import check_messages, check_request
from beam_hedge.testing.refusal import RefusedError
from beam_hedge.testing.waiting import CallWait, EventWatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.testing.ledger import Books
    from beam_hedge.testing.relay import Relay
    from beam_hedge.testing.reply import Reply
    from beam_hedge.testing.topics import Topics


@dataclass(frozen=True)
class Call:
    """One publish call.

    Attributes:
        number: Its number, counted from 1.
        arrival: When it arrived, on the scale of `time.monotonic()`.
        latency: The seconds that it drew from the profile.
        raw: The encoded request.
        request: The same as a raw protobuf.
        context: The gRPC context.
        peer: The client's own address and port.
    """

    number: int
    arrival: float
    latency: float
    raw: bytes
    request: Any
    context: Any
    peer: str


class CallEndedError(Exception):
    """The call ended before there was an answer."""


class Answers:
    """Answers publish calls as the script says; the handler threads of the server share it.

    Args:
        topics: Where messages are stored.
        books: Where stored messages are counted.
        store_at_arrival: Whether messages are stored at arrival, or else right before the answer.
        max_request_bytes: The largest request that is accepted.
        relay: Returns the relay that is in front, if any.
    """

    def __init__(
        self,
        topics: Topics,
        books: Books,
        *,
        store_at_arrival: bool,
        max_request_bytes: int,
        relay: Callable[[], Relay | None],
    ) -> None:
        self._topics = topics
        self._books = books
        self._store_at_arrival = store_at_arrival
        self._max_request_bytes = max_request_bytes
        self._relay = relay
        self._watch = EventWatch()

    def answer(self, call: Call, reply: Reply) -> tuple[str, ...]:
        """Does with a call what a reply says.

        Returns:
            The message ids to answer.

        Raises:
            RefusedError: The error status to answer.
            CallEndedError: If there is nobody to answer any more.
        """
        succeeds = reply.status is grpc.StatusCode.OK
        stored = reply.stored
        if stored is None:
            stored = succeeds and (self._store_at_arrival or not reply.unanswered)
        if succeeds or stored:
            self._check(call)
        first = None
        if stored and (self._store_at_arrival or reply.unanswered):
            first = self._store(call)
        if not self._wait(call, reply):
            raise CallEndedError
        if stored and first is None:
            first = self._store(call)
        if not succeeds:
            raise RefusedError(reply.status, reply.details)
        count = len(call.request.messages)
        wanted = count if reply.ids is None else reply.ids
        # Ids are made up for messages that are not stored, and for an answer that holds too many.
        if first is None or wanted > count:
            first = self._topics.new_ids(wanted)
        return tuple(map(str, range(first, first + wanted)))

    def _check(self, call: Call) -> None:
        self._topics.check(call.request.topic)
        check_request(call.request, len(call.raw), self._max_request_bytes)
        # A load test sends the same kind of message all the time: looking at each would halve the load.
        if self._topics.keep_messages:
            check_messages(call.request.messages)

    def _store(self, call: Call) -> int:
        count = len(call.request.messages)
        first = self._topics.store(call.request.topic, call.raw, count, call.number)
        self._books.store(call.request.topic, count)
        return first

    def _wait(self, call: Call, reply: Reply) -> bool:
        delay = call.latency if reply.delay is None else reply.delay
        if not reply.unanswered and reply.until is None and delay == 0:
            return True
        wait = CallWait(call.context, self._watch)
        relay = self._relay()
        if reply.cut and relay is not None:
            relay.cut(int(call.peer.rpartition(":")[2]))
        if reply.unanswered:
            return wait.sleep(None)
        if reply.until is not None and not wait.wait_for(reply.until):
            return False
        return wait.sleep(max(0.0, call.arrival + delay - monotonic()))


def peer_of(context: Any, relay: Relay | None) -> str:
    """Returns the client's own address and port, also when a relay is in between."""
    address = unquote(context.peer()).partition(":")[2]
    return address if relay is None else relay.client_of(address)
