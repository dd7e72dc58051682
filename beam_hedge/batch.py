"""A bundle's messages, grouped into requests by count, size and age."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beam_hedge.errors import InvalidMessageError
from beam_hedge.message import check_fits, encode, encode_topic
from beam_hedge.settings import MAX_REQUEST_BYTES, MAX_REQUEST_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from google.cloud.pubsub_v1.types import BatchSettings

    from beam_hedge.message import MessageLike


@dataclass(frozen=True, eq=False)
class Batch:
    """One serialized `PublishRequest`, never changed again: every attempt sends these bytes.

    Attributes:
        topic: The full name of the topic.
        request: The whole encoded request.
        messages: How many messages it holds; at least one.
    """

    topic: str
    request: bytes
    messages: int


def seal(topic: str, messages: Iterable[bytes | str | MessageLike]) -> Batch:
    """Makes one batch of messages.

    Raises:
        InvalidMessageError: A message, or all of them together, break one of Pub/Sub's limits.
    """
    if isinstance(messages, bytes | str) or not isinstance(messages, Iterable):
        raise InvalidMessageError(f"messages must be a list of messages, got one {type(messages).__name__}")
    fields = [encode(message) for message in messages]
    if not 1 <= len(fields) <= MAX_REQUEST_MESSAGES:
        raise InvalidMessageError(f"a batch must have 1 to {MAX_REQUEST_MESSAGES} messages, got {len(fields)}")
    batch = seal_fields(topic, fields)
    if len(batch.request) > MAX_REQUEST_BYTES:
        raise InvalidMessageError(
            f"{len(fields)} messages make a request of {len(batch.request)} B; at most {MAX_REQUEST_BYTES} B "
            "are allowed"
        )
    return batch


def seal_fields(topic: str, fields: Sequence[bytes]) -> Batch:
    """Makes one batch of encoded messages."""
    return Batch(topic, b"".join((encode_topic(topic), *fields)), len(fields))


class BatchBuilder:
    """Fills batches with a topic's messages and hands each to `emit` when it is full or old.

    A message that is larger than `max_bytes` goes alone, as long as Pub/Sub can take it. A batch's age is
    looked at when a message arrives; nothing waits on a timer. Not safe for concurrent use: a bundle has its
    own.

    Args:
        topic: The full name of the topic.
        batch_settings: The most messages, request bytes (the whole encoded request) and seconds of a batch.
        emit: Takes each sealed batch, and the elements that were added with its messages.
        clock: Gives monotonic seconds.
    """

    def __init__(
        self,
        topic: str,
        batch_settings: BatchSettings,
        emit: Callable[[Batch, Sequence[Any]], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topic = topic
        self._topic_field = encode_topic(topic)
        self._max_messages = batch_settings.max_messages
        self._max_bytes = batch_settings.max_bytes
        self._max_latency = batch_settings.max_latency
        self._emit = emit
        self._clock = clock
        # When the batch is old; one without messages has yet to begin.
        self._due = -math.inf
        self._messages: list[bytes] = []
        self._elements: list[Any] = []
        self._bytes = len(self._topic_field)

    def add(self, message: bytes, element: object = None) -> None:
        """Adds an encoded message.

        Args:
            message: A message's field of a request.
            element: What it was made of, if `emit` needs to know. Default: nothing.

        Raises:
            InvalidMessageError: No request can carry it.
        """
        now = self._clock()
        size = self._bytes + len(message)
        if size > self._max_bytes or now >= self._due:
            self.flush()
            size = self._bytes + len(message)
            if size > self._max_bytes:
                check_fits(self._topic_field, message)
            self._due = now + self._max_latency
        messages = self._messages
        messages.append(message)
        if element is not None:
            self._elements.append(element)
        self._bytes = size
        if len(messages) >= self._max_messages or size >= self._max_bytes:
            self.flush()

    def flush(self) -> None:
        """Emits what there is, if anything."""
        if not self._messages:
            return
        batch = Batch(self._topic, b"".join((self._topic_field, *self._messages)), len(self._messages))
        elements = self._elements
        self._messages, self._elements = [], []
        self._bytes = len(self._topic_field)
        self._due = -math.inf
        self._emit(batch, elements)
