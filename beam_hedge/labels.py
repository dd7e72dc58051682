"""The attributes that the sink itself puts on messages: an id, and the element's time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from beam_hedge.errors import InvalidMessageError, InvalidSettingError
from beam_hedge.message import check_attribute_name, is_mapping

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Labels:
    """Names of the attributes that each message gets.

    Args:
        id_label: Holds an id that is equal on all copies of a message. A message that has one keeps it.
        timestamp_attribute: Holds the element's event time in milliseconds since the epoch.

    Raises:
        InvalidSettingError: A name is one that no attribute can have, or both are the same.
    """

    id_label: str | None = None
    timestamp_attribute: str | None = None

    def __post_init__(self) -> None:
        for field in ("id_label", "timestamp_attribute"):
            name = getattr(self, field)
            if name is None:
                continue
            if not isinstance(name, str):
                raise InvalidSettingError(field, name, "the name of an attribute")
            try:
                check_attribute_name(name)
            except InvalidMessageError as error:
                raise InvalidSettingError(field, name, f"the name of an attribute ({error})") from error
        if self.id_label is not None and self.id_label == self.timestamp_attribute:
            raise InvalidSettingError(
                "timestamp_attribute", self.timestamp_attribute, "another name than id_label"
            )

    def __bool__(self) -> bool:
        return self.id_label is not None or self.timestamp_attribute is not None

    def of(
        self, attributes: Mapping[str, str] | None, message_id: str | None, event_time_ms: int = 0
    ) -> dict[str, str]:
        """Returns the labels of one message.

        Args:
            attributes: The message's own attributes.
            message_id: The id for a message that has none of its own.
            event_time_ms: When it happened, in milliseconds since the epoch; needed for a timestamp attribute.
        """
        labels: dict[str, str] = {}
        if self.id_label is not None and message_id is not None:
            # What is no mapping, or no text, is the encoder's to refuse.
            own = attributes.get(self.id_label, "") if attributes and is_mapping(attributes) else ""
            if own == "":
                labels[self.id_label] = message_id
        if self.timestamp_attribute is not None:
            labels[self.timestamp_attribute] = str(event_time_ms)
        return labels
