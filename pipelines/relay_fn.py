"""The step between a subscription and a topic: which messages go on, and with which attributes."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage

from pipelines.counters import StepCounter
from pipelines.draining import end_here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.attributes import Changes
    from pipelines.message_filter import MessageFilter


class RelayFn(beam.DoFn):
    """Makes of each message that was read the one that is to be published.

    Data is never changed. What Pub/Sub set, and takes from nobody else, is left out: the message id, the time
    of publishing and attributes whose names it reserves. The ordering key is cleared, as the sink publishes
    without order.

    Args:
        message_filter: Tells which messages go on.
        changes: What becomes of attributes.
        id_label: Attribute for an id. A message that has one keeps it; the others get their message id, which
            is the same when the subscription delivers a message again.
        ordering_key_attribute: Attribute that keeps the ordering key, if there is one.
        drop_empty: Whether a message is dropped that has nothing left: neither data nor attributes. If not,
            the sink refuses it.
    """

    def __init__(
        self,
        *,
        message_filter: MessageFilter,
        changes: Changes,
        id_label: str | None,
        ordering_key_attribute: str | None,
        drop_empty: bool,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Beam's has no annotations
        self._filter = message_filter
        self._changes = changes
        self._id_label = id_label
        self._ordering_key_attribute = ordering_key_attribute
        self._drop_empty = drop_empty
        self._read = StepCounter("messages_read")
        self._filtered_out = StepCounter("messages_filtered_out")
        self._empty = StepCounter("empty_messages_dropped")
        self._ordering_keys = StepCounter("ordering_keys_cleared")
        self._reserved = StepCounter("reserved_attributes_dropped")
        self._replaced = StepCounter("attributes_replaced")

    def start_bundle(self) -> None:
        """Knows of nothing that later steps have to do."""
        self._passes_on = False

    def process(self, message: PubsubMessage) -> Iterator[PubsubMessage]:
        """Yields the message to publish, or nothing."""
        self._read.inc()
        if not self._filter.lets_through(message.attributes or {}):
            self._filtered_out.inc()
            return
        attributes = self._attributes_of(message)
        if self._drop_empty and not message.data and not attributes:
            self._empty.inc()
            return
        self._passes_on = True
        yield PubsubMessage(message.data or b"", attributes)

    def finish_bundle(self) -> None:
        """Ends a bundle that no later step will hear of."""
        if not self._passes_on:
            end_here()

    def _attributes_of(self, message: PubsubMessage) -> dict[str, str]:
        own: dict[str, str] = {}
        if message.ordering_key:
            self._ordering_keys.inc()
            if self._ordering_key_attribute is not None:
                own[self._ordering_key_attribute] = message.ordering_key
        changed = self._changes.apply(message.attributes or {}, own)
        self._reserved.inc(changed.reserved)
        self._replaced.inc(changed.replaced)
        if self._id_label is not None and not changed.attributes.get(self._id_label):
            # Where the source tells no id, at least copies that hedges make share one.
            changed.attributes[self._id_label] = message.message_id or uuid.uuid4().hex
        return changed.attributes
