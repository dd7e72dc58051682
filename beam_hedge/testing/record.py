"""The record of publish calls: who sent what, with how much time left, and how it ended."""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError
from google.pubsub_v1 import types

from beam_hedge.testing.messages import decode_messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    import grpc

    from beam_hedge.testing.messages import SentMessage


TELEMETRY_HEADER = "x-goog-pubsub-client-telemetry"
_Telemetry: Any = types.PubsubClientTelemetry.pb()


@dataclass(frozen=True)
class RequestRecord:
    """One publish call. A record does not change: ask the server again to see how a call went on.

    Attributes:
        number: The number of the call, counted from 1 over all topics.
        topic: The topic that the request names.
        raw: The encoded request.
        metadata: The call's headers; of a repeated one the last.
        peer: The client's own address and port, such as "127.0.0.1:50312", also with the relay.
        time_left: Seconds to the call's deadline at arrival; None without a deadline. gRPC rounds up what it
            sends, so it may be a little more than the client's timeout.
        arrival: When the call arrived, on the scale of `time.monotonic()`.
        latency: Seconds that the call drew from the profile; a scripted delay takes their place.
        ended: When the call ended, on the scale of `arrival`; None while it is open.
        status: The status that was answered; None without an answer.
        details: The text of an error status.
        message_ids: The ids that were answered.
        cancelled: Whether the call ended without an answer: by the client, its deadline, its connection, or
            because the server stopped.
    """

    number: int
    topic: str
    raw: bytes
    metadata: Mapping[str, str | bytes]
    peer: str
    time_left: float | None
    arrival: float
    latency: float
    ended: float | None = None
    status: Any = None
    details: str = ""
    message_ids: tuple[str, ...] = ()
    cancelled: bool = False

    @property
    def size(self) -> int:
        """The size of the encoded request in bytes."""
        return len(self.raw)

    @property
    def peer_port(self) -> int:
        """The port of the client's end of the connection."""
        return int(self.peer.rpartition(":")[2])

    @cached_property
    def messages(self) -> tuple[SentMessage, ...]:
        """The messages of the request."""
        return decode_messages(self.raw)

    @cached_property
    def hedged_attempt_count(self) -> int | None:
        """Which attempt the client says it is, 0 for an original, 1 and up for hedges, None for nothing.

        Raises:
            ValueError: If the header is malformed.
        """
        header = self.metadata.get(TELEMETRY_HEADER)
        return None if header is None else hedged_attempt_count(header)

    def __repr__(self) -> str:
        state = "cancelled" if self.cancelled else "open" if self.status is None else self.status.name
        return f"<RequestRecord {self.number} {self.topic} {self.size} B from {self.peer} {state}>"


def hedged_attempt_count(header: str | bytes) -> int:
    """Returns the number of the hedge that a telemetry header tells, 0 for an original.

    Raises:
        ValueError: If it is no such header.
    """
    try:
        telemetry = _Telemetry.FromString(base64.b64decode(header, validate=True))
    except DecodeError as error:
        raise ValueError(f"this is no telemetry header: {header!r}") from error
    return int(telemetry.publish_operation.hedged_attempt_count)


def is_hedge(metadata: Mapping[str, str | bytes]) -> bool:
    """Returns whether the headers of a call say that it is a hedge; a malformed one says nothing."""
    header = metadata.get(TELEMETRY_HEADER)
    try:
        return header is not None and hedged_attempt_count(header) > 0
    except ValueError:
        return False


class Recorder:
    """Keeps the last records.

    Owned by the publish service and used by all its handlers; the lock guards the table and is held for
    moments.

    Args:
        limit: How many records are kept; 0 for none.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._records: OrderedDict[int, RequestRecord] = OrderedDict()

    def add(self, record: RequestRecord) -> None:
        """Keeps a new record, and lets the oldest one go if there are too many."""
        with self._lock:
            self._records[record.number] = record
            if len(self._records) > self.limit:
                self._records.popitem(last=False)

    def end(
        self,
        number: int,
        ended: float,
        status: grpc.StatusCode | None,
        details: str = "",
        message_ids: tuple[str, ...] = (),
    ) -> None:
        """Completes a record, if it is still kept."""
        with self._lock:
            record = self._records.get(number)
            if record is not None:
                self._records[number] = replace(
                    record,
                    ended=ended,
                    status=status,
                    details=details,
                    message_ids=message_ids,
                    cancelled=status is None,
                )

    def snapshot(self) -> tuple[RequestRecord, ...]:
        """Returns the records, ordered by call number."""
        with self._lock:
            return tuple(self._records[number] for number in sorted(self._records))
