"""One message: checked once against Pub/Sub's limits, in bytes, and encoded once.

An encoded message is its field of a `PublishRequest`: tag, length and body. A request is the topic's field
followed by such fields, so a batch is sealed by joining bytes. docs/decisions/0002-encode-by-hand.md says
why protobuf's own encoder is not used for that; tests hold the two equal.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Protocol

from beam_hedge.errors import InvalidMessageError, shown
from beam_hedge.settings import MAX_REQUEST_BYTES

MAX_ATTRIBUTES = 100
MAX_KEY_BYTES = 256
MAX_VALUE_BYTES = 1024

# Tags of google.pubsub.v1: PublishRequest.topic and .messages, PubsubMessage.data and .attributes, and the
# key and value of a map's entry. A tag is the field's number and its wire type (2: length-delimited).
_TOPIC = b"\x0a"
_MESSAGE = b"\x12"
_DATA = b"\x0a"
_ATTRIBUTE = b"\x12"
_KEY = b"\x0a"
_VALUE = b"\x12"

_ORDERING_REFUSED = (
    "a message has an ordering key, which this sink refuses: copies of a batch, and batches of one bundle, can "
    "be stored out of order. Clear the key, or use beam.io.WriteToPubSub with publish_with_ordering_key=True"
)


class MessageLike(Protocol):
    """What google-cloud-pubsub's and Beam's `PubsubMessage` have in common."""

    @property
    def data(self) -> bytes | None:
        """The payload."""
        ...

    @property
    def attributes(self) -> Mapping[str, str] | None:
        """Names and values beside the payload."""
        ...

    @property
    def ordering_key(self) -> str:
        """What orders messages; must be empty here."""
        ...


def encode(message: bytes | str | MessageLike) -> bytes:
    """Encodes a message of any kind that `HedgingPublisher.publish` takes."""
    if isinstance(message, bytes | str):
        return encode_data(message)
    return encode_message(message)


def encode_data(data: bytes | str, labels: Mapping[str, str] | None = None) -> bytes:
    """Encodes a message that is only data.

    Args:
        data: Bytes, or text that is sent as UTF-8. Not empty.
        labels: Attributes that it gets on its way. Default: none.

    Returns:
        The message's field of a `PublishRequest`.

    Raises:
        InvalidMessageError: It is of another type, empty, or text that UTF-8 cannot hold.
    """
    if isinstance(data, str):
        data = _utf8(data, "data")
    elif not isinstance(data, bytes):
        raise InvalidMessageError(f"data must be bytes or str, got {type(data).__name__}{_hint(data)}")
    if not data:
        raise InvalidMessageError("a message must have data or attributes; this one has neither")
    if labels:
        return _encode_fields(data, labels)
    return _data_head(len(data)) + data


def encode_message(message: MessageLike, labels: Mapping[str, str] | None = None) -> bytes:
    """Encodes a message with attributes.

    Args:
        message: A `PubsubMessage` of Beam or of google-cloud-pubsub. Its message id and publish time, which
            only the service sets, are left out.
        labels: Attributes that it gets on its way, in place of its own of the same names. Default: none.

    Returns:
        The message's field of a `PublishRequest`.

    Raises:
        InvalidMessageError: It breaks one of the limits of
            https://cloud.google.com/pubsub/quotas#resource_limits, or has an ordering key. The text names the
            attribute and its size or type.
    """
    try:
        data, attributes, ordering_key = message.data, message.attributes, message.ordering_key
    except AttributeError:
        kind = type(message).__name__
        raise InvalidMessageError(f"a message must be a PubsubMessage, got {kind}") from None
    if ordering_key:
        raise InvalidMessageError(_ORDERING_REFUSED)
    if data is None:
        data = b""
    if not (attributes is None or is_mapping(attributes)):
        raise InvalidMessageError(f"attributes must be a mapping, got {type(attributes).__name__}")
    if not attributes:
        return encode_data(data, labels)
    if isinstance(data, str):
        data = _utf8(data, "data")
    elif not isinstance(data, bytes):
        raise InvalidMessageError(f"data must be bytes or str, got {type(data).__name__}")
    return _encode_fields(data, {**attributes, **labels} if labels else attributes)


def is_mapping(attributes: object) -> bool:
    """Tells whether attributes are a mapping; most are plain dicts, of which the abstract class takes long."""
    return type(attributes) is dict or isinstance(attributes, Mapping)


def check_attribute_name(name: str) -> None:
    """Refuses a name that no attribute can have.

    Raises:
        InvalidMessageError: The name is no text, empty, too long, or reserved.
    """
    _attribute_head(name, 0)


def encode_topic(topic: str) -> bytes:
    """Encodes the topic's field of a `PublishRequest`."""
    name = topic.encode("ascii")
    return _TOPIC + _varint(len(name)) + name


def check_fits(topic_field: bytes, message: bytes) -> None:
    """Refuses a message that no request can carry.

    Raises:
        InvalidMessageError: The request with this message alone has more than 10,000,000 bytes.
    """
    size = len(topic_field) + len(message)
    if size > MAX_REQUEST_BYTES:
        raise InvalidMessageError(
            f"a message makes a request of {size} B when sent alone; at most {MAX_REQUEST_BYTES} B are allowed"
        )


def _encode_fields(data: bytes, attributes: Mapping[str, str]) -> bytes:
    if len(attributes) > MAX_ATTRIBUTES:
        raise InvalidMessageError(
            f"a message has {len(attributes)} attributes; at most {MAX_ATTRIBUTES} are allowed"
        )
    parts = [_DATA, _varint(len(data)), data] if data else []
    for key, value in attributes.items():
        # Most values are short and ASCII, and a call for each costs a tenth of the whole message.
        short = type(value) is str and len(value) <= MAX_VALUE_BYTES and value.isascii()
        encoded = value.encode() if short else _encode_value(key, value)
        parts.append(_attribute_head(key, len(encoded)))
        parts.append(encoded)
    body = b"".join(parts)
    return b"".join((_MESSAGE, _varint(len(body)), body))


def _encode_value(key: str, value: str) -> bytes:
    if not isinstance(value, str):
        raise InvalidMessageError(f"attribute {_name(key)} must have a str value, got {type(value).__name__}")
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        raise _surrogate(f"attribute {_name(key)}") from None
    if len(encoded) > MAX_VALUE_BYTES:
        raise InvalidMessageError(
            f"attribute {_name(key)} has a value of {len(encoded)} B; at most {MAX_VALUE_BYTES} B are allowed"
        )
    return encoded


# Attribute names and the lengths of their values repeat from message to message; an error is not cached.
@functools.lru_cache(maxsize=16_384)
def _attribute_head(key: str, value_size: int) -> bytes:
    """Encodes all of an attribute but its value."""
    if not isinstance(key, str):
        raise InvalidMessageError(f"an attribute's key must be a str, got {type(key).__name__}")
    encoded = _utf8(key, f"the attribute key {_name(key)}")
    if not encoded:
        raise InvalidMessageError("an attribute's key must not be empty")
    if len(encoded) > MAX_KEY_BYTES:
        raise InvalidMessageError(
            f"the attribute key {_name(key)} has {len(encoded)} B; at most {MAX_KEY_BYTES} B are allowed"
        )
    if encoded.startswith(b"goog"):
        raise InvalidMessageError(
            f"the attribute key {_name(key)} starts with 'goog', which the service reserves"
        )
    fields = b"".join((_KEY, _varint(len(encoded)), encoded, _VALUE, _varint(value_size)))
    return b"".join((_ATTRIBUTE, _varint(len(fields) + value_size), fields))


@functools.lru_cache(maxsize=4096)
def _data_head(size: int) -> bytes:
    data_head = _DATA + _varint(size)
    return _MESSAGE + _varint(len(data_head) + size) + data_head


@functools.lru_cache(maxsize=4096)
def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte, and one that says whether more follow
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _utf8(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _surrogate(what) from None


def _surrogate(what: str) -> InvalidMessageError:
    return InvalidMessageError(f"{what} holds a lone surrogate, which UTF-8 cannot encode")


def _name(key: object) -> str:
    return shown(key, 100)


def _hint(data: object) -> str:
    return " (with_attributes=True takes PubsubMessage)" if hasattr(data, "attributes") else ""
