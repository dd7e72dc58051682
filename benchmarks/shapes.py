"""What is published in throughput measurements: messages of several sizes, with and without attributes."""

from __future__ import annotations

from dataclasses import dataclass

from apache_beam.io.gcp.pubsub import PubsubMessage

from beam_hedge.settings import DEFAULT_BATCH_SETTINGS

_KIB = 1024
_ID = "0123456789abcdef" * 2


@dataclass(frozen=True)
class Shape:
    """One kind of message.

    Attributes:
        size: Bytes of data.
        attributes: How many it has.
        has_id: Whether it has an id besides.
    """

    size: int
    attributes: int = 0
    has_id: bool = False

    def __str__(self) -> str:
        size = f"{self.size // _KIB} KiB" if self.size >= _KIB else f"{self.size} B"
        attributes = f", {self.attributes} attributes" if self.attributes else ""
        return f"{size}{attributes}{' and an id' if self.has_id else ''}"

    @property
    def id(self) -> str:
        """The id, as long as those that the sink makes."""
        return _ID

    @property
    def data(self) -> bytes:
        """The payload."""
        return b"x" * self.size

    @property
    def own_attributes(self) -> dict[str, str]:
        """The attributes without the id."""
        return {f"attribute{number}": f"value {number}" for number in range(self.attributes)}

    @property
    def all_attributes(self) -> dict[str, str]:
        """The attributes, and the id if there is one."""
        return {**self.own_attributes, **({"id": _ID} if self.has_id else {})}

    @property
    def message(self) -> PubsubMessage:
        """The message with all of its attributes."""
        return PubsubMessage(self.data, self.all_attributes)

    @property
    def batch(self) -> int:
        """How many of them a batch holds by the default settings, with 100 B to spare for each."""
        by_size: int = DEFAULT_BATCH_SETTINGS.max_bytes // (self.size + 100)
        return min(by_size, int(DEFAULT_BATCH_SETTINGS.max_messages))


SHAPES = tuple(
    Shape(size, attributes, has_id)
    for size in (100, _KIB, 100 * _KIB)
    for attributes, has_id in ((0, False), (5, False), (5, True))
)
