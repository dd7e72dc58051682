"""Messages that cannot be published, published to a topic of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage

from beam_hedge import InvalidSettingError, WriteToPubSubHedged
from pipelines.attributes import MAX_ATTRIBUTES, why_no_name, why_no_value
from pipelines.counters import StepCounter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beam_hedge import FailedMessage, WriteResult
    from pipelines.options import HedgingOptions

STEP = "Publish dead letters"
REASON = "dead_letter_reason"
STATUS = "dead_letter_status"
TARGET = "dead_letter_topic"
DATA_BYTES = "dead_letter_data_bytes"
LEFT_OUT = "dead_letter_attributes_left_out"

_OWN = (REASON, STATUS, TARGET, DATA_BYTES, LEFT_OUT)
_MAX_REQUEST_BYTES = 10_000_000
# Tags and lengths of an attribute's fields, and of the request's.
_FRAME_BYTES = 16


class PublishDeadLetters(beam.PTransform["beam.PCollection[FailedMessage]", "WriteResult"]):
    """Publishes messages that were refused to the dead-letter topic, with the reason in attributes.

    A message keeps its data and attributes, and gets the attributes `dead_letter_reason`,
    `dead_letter_status` and `dead_letter_topic` (the topic that it was for). What keeps the message from
    being published anywhere is mended: data that is too long is cut, and `dead_letter_data_bytes` says how
    long it was; attributes that break a limit or find no room are left out, and
    `dead_letter_attributes_left_out` says how many.

    They are published without hedging: there are few of them, and nobody waits for them.

    Args:
        options: They name the topics, and say how to publish.
        with_outcomes: As for `WriteToPubSubHedged`.

    Raises:
        InvalidSettingError: The dead-letter topic is no full topic name, or the topic itself.
    """

    def __init__(self, options: HedgingOptions, *, with_outcomes: bool = False) -> None:
        super().__init__()
        topic: str = options.dead_letter_topic
        self._target: str = options.topic
        if topic == self._target:
            raise InvalidSettingError("dead_letter_topic", topic, "another topic than --topic")
        arguments: dict[str, Any] = {
            **options.sink_arguments(),
            "topic": topic,
            "settings": None,
            "dead_letter": False,
            "with_attributes": True,
            "with_outcomes": with_outcomes,
        }
        try:
            self._sink = WriteToPubSubHedged(**arguments)
        except InvalidSettingError as error:
            if error.field != "topic":
                raise
            raise InvalidSettingError("dead_letter_topic", error.value, error.allowed) from error
        self._room = _MAX_REQUEST_BYTES - len(topic) - _FRAME_BYTES

    def expand(self, failed: beam.PCollection[FailedMessage]) -> WriteResult:
        """Adds the publishing steps."""
        to_messages = beam.ParDo(_ToDeadLetter(self._target, self._room)).with_output_types(PubsubMessage)
        result: WriteResult = failed | "Give reasons" >> to_messages | "Publish" >> self._sink
        return result


def dead_letter(failed: FailedMessage, target: str, room: int) -> PubsubMessage:
    """Returns a message that tells of a refused one, and that no limit keeps from being published.

    Args:
        failed: The refused message: bytes, or a `PubsubMessage`.
        target: The topic that it was for.
        room: Bytes that data and attributes may take up together.
    """
    data, given = _parts_of(failed.element)
    kept = _publishable(given)
    attributes = {**kept, REASON: failed.reason, STATUS: failed.status, TARGET: target}
    if left_out := len(given) - len(kept):
        attributes[LEFT_OUT] = str(left_out)
    room -= sum(len(key.encode()) + len(value.encode()) + _FRAME_BYTES for key, value in attributes.items())
    if len(data) > room:
        attributes[DATA_BYTES] = str(len(data))
        data = data[: room - len(DATA_BYTES) - len(attributes[DATA_BYTES]) - _FRAME_BYTES]
    return PubsubMessage(data, attributes)


class _ToDeadLetter(beam.DoFn):
    def __init__(self, target: str, room: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Beam's has no annotations
        self._target = target
        self._room = room
        self._count = StepCounter("dead_letters")

    def process(self, failed: Any) -> Iterator[PubsubMessage]:
        self._count.inc()
        yield dead_letter(failed, self._target, self._room)


def _parts_of(element: bytes | PubsubMessage) -> tuple[bytes, Mapping[str, str]]:
    if isinstance(element, bytes):
        return element, {}
    return element.data or b"", element.attributes or {}


def _publishable(attributes: Mapping[str, str]) -> dict[str, str]:
    """Returns the attributes that a dead letter can keep; its own come on top."""
    kept = {
        key: value
        for key, value in attributes.items()
        if key not in _OWN and why_no_name(key) is None and why_no_value(value) is None
    }
    return dict(list(kept.items())[: MAX_ATTRIBUTES - len(_OWN)])
