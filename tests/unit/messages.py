"""Messages for the tests: of each kind that the library takes, and what google's protobuf makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from apache_beam.io.gcp.pubsub import PubsubMessage as BeamMessage
from google.protobuf.any_pb2 import Any as AnyProto
from google.pubsub_v1.types import PublishRequest
from google.pubsub_v1.types import PubsubMessage as GoogleMessage
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Mapping

_Request = PublishRequest.pb()
_Message = GoogleMessage.pb()


@dataclass
class AnyMessage:
    """A message that holds whatever the test says, right or wrong."""

    data: Any = b"x"
    attributes: Any = field(default_factory=dict)
    ordering_key: Any = ""


def beam_message(data: bytes, attributes: Mapping[str, str]) -> BeamMessage:
    """Makes Beam's message."""
    return BeamMessage(data, dict(attributes))


def google_message(data: bytes, attributes: Mapping[str, str]) -> GoogleMessage:
    """Makes google-cloud-pubsub's message."""
    return GoogleMessage(data=data, attributes=attributes)


def raw_message(data: bytes, attributes: Mapping[str, str]) -> Any:
    """Makes the protobuf message under google-cloud-pubsub's."""
    return _Message(data=data, attributes=attributes)


def by_protobuf(data: bytes, attributes: Mapping[str, str]) -> bytes:
    """Encodes a message's field of a request with google's protobuf.

    Protobuf gives a map no order, so each attribute is encoded as a map of its own: parts of a message that are
    joined are that message. `Any` has bytes where a request has its messages.
    """
    parts = [_Message(data=data), *(_Message(attributes={key: value}) for key, value in attributes.items())]
    return AnyProto(value=b"".join(part.SerializeToString() for part in parts)).SerializeToString()


def decode(encoded: bytes) -> tuple[bytes, dict[str, str]]:
    """Reads the one message of a request back, and makes sure that there is nothing else in it."""
    request = _Request.FromString(encoded)
    (message,) = request.messages
    data, attributes = message.data, dict(message.attributes)
    assert request == _Request(messages=[_Message(data=data, attributes=attributes)])
    return data, attributes


def _fits(most: int) -> Any:
    return lambda text: len(text.encode()) <= most


keys = st.one_of(
    st.sampled_from(
        ("topic", "data", "ordering_key", "retry", "timeout", "self", "k" * 127, "k" * 128, "k" * 256)
    ),
    st.text(min_size=1, max_size=70).filter(lambda key: not key.startswith("goog") and _fits(256)(key)),
)
values = st.one_of(
    st.sampled_from(("", "v" * 127, "v" * 128, "v" * 1024, "\u00e9" * 512)),
    st.text(max_size=70).filter(_fits(1024)),
)
attribute_maps = st.dictionaries(keys, values, max_size=8)
payloads = st.one_of(
    st.binary(max_size=300),
    st.sampled_from((b"d" * 127, b"d" * 128, b"d" * 16_383, b"d" * 16_384)),
)
