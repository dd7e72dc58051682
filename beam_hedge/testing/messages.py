"""Messages as the server received and as it stored them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from google.pubsub_v1 import types

if TYPE_CHECKING:
    from collections.abc import Mapping


PublishRequest: Any = types.PublishRequest.pb()
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class SentMessage:
    """One message of a publish request.

    Attributes:
        data: Its payload.
        attributes: Its attributes; empty if it has none.
        ordering_key: Its ordering key; "" if it has none.
    """

    data: bytes
    attributes: Mapping[str, str] = field(default_factory=dict)
    ordering_key: str = ""

    @property
    def content(self) -> tuple[bytes, frozenset[tuple[str, str]]]:
        """Data and attributes as one hashable value, which tells copies of a message."""
        return self.data, frozenset(self.attributes.items())


@dataclass(frozen=True)
class StoredMessage(SentMessage):
    """One message as a topic holds it.

    Attributes:
        message_id: The id that the server gave it.
        publish_time: When the server stored it, UTC.
        request: The number of the publish call that brought it, counted from 1.
    """

    message_id: str = ""
    publish_time: datetime = _EPOCH
    request: int = 0


class StoredRequest:
    """The messages of one publish call, kept encoded: storing costs the same for one message as for a thousand.

    Args:
        number: The number of the publish call.
        raw: The encoded `PublishRequest`.
        count: How many messages it holds.
        first_id: The id of its first message; the others follow it one by one.
        time_ns: When it was stored, in nanoseconds since the epoch.
    """

    __slots__ = ("count", "first_id", "number", "raw", "time_ns")

    def __init__(self, number: int, raw: bytes, count: int, first_id: int, time_ns: int) -> None:
        self.number = number
        self.raw = raw
        self.count = count
        self.first_id = first_id
        self.time_ns = time_ns

    def to_protobuf(self) -> list[Any]:
        """Returns the messages as raw protobufs with id and publish time, as a subscriber receives them."""
        messages = list(PublishRequest.FromString(self.raw).messages)
        for message_id, message in enumerate(messages, self.first_id):
            message.message_id = str(message_id)
            message.publish_time.FromNanoseconds(self.time_ns)
        return messages

    def to_messages(self) -> list[StoredMessage]:
        """Returns the messages as plain values."""
        publish_time = _EPOCH + timedelta(microseconds=self.time_ns // 1_000)
        return [
            StoredMessage(
                data=message.data,
                attributes=dict(message.attributes),
                ordering_key=message.ordering_key,
                message_id=str(message_id),
                publish_time=publish_time,
                request=self.number,
            )
            for message_id, message in enumerate(PublishRequest.FromString(self.raw).messages, self.first_id)
        ]


def decode_messages(raw: bytes) -> tuple[SentMessage, ...]:
    """Returns the messages of an encoded `PublishRequest`."""
    return tuple(
        SentMessage(message.data, dict(message.attributes), message.ordering_key)
        for message in PublishRequest.FromString(raw).messages
    )
