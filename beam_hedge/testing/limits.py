"""What Pub/Sub accepts: names, and the sizes of messages and requests."""

from __future__ import annotations

import re
from typing import Any

from beam_hedge.testing.refusal import invalid

MAX_REQUEST_BYTES = 10_000_000
MAX_MESSAGES = 1_000
MAX_ATTRIBUTES = 100
MAX_KEY_BYTES = 256
MAX_VALUE_BYTES = 1_024
MAX_ORDERING_KEY_BYTES = 1_024

# The real service wants three characters or more in an id. Like other emulators this one takes shorter ones.
_NAME = re.compile(
    r"projects/[^/\s]+/(?P<kind>topics|subscriptions)/(?P<id>[A-Za-z][\w.~+%-]{0,254})", re.ASCII
)


def check_name(kind: str, name: str) -> None:
    """Checks the full name of a topic or a subscription.

    Args:
        kind: "topics" or "subscriptions".
        name: Such as "projects/p/topics/t".

    Raises:
        RefusedError: INVALID_ARGUMENT if the name is malformed.
    """
    match = _NAME.fullmatch(name)
    if match is None or match["kind"] != kind or match["id"].startswith("goog"):
        raise invalid(f"invalid name {name!r}: expected projects/PROJECT/{kind}/ID")


def check_request(request: Any, size: int, max_request_bytes: int) -> None:
    """Checks a publish request as a whole.

    Args:
        request: The raw protobuf `PublishRequest`.
        size: Its encoded size in bytes.
        max_request_bytes: The largest size that is accepted.

    Raises:
        RefusedError: INVALID_ARGUMENT, naming the first rule that is broken.
    """
    if size > max_request_bytes:
        raise invalid(f"the request has {size} bytes, at most {max_request_bytes} are allowed")
    count = len(request.messages)
    if count == 0:
        raise invalid("the request has no messages")
    if count > MAX_MESSAGES:
        raise invalid(f"the request has {count} messages, at most {MAX_MESSAGES} are allowed")


def check_messages(messages: Any) -> None:
    """Checks each message of a request against the limits, which count bytes of UTF-8 and not characters.

    Args:
        messages: The raw protobuf messages.

    Raises:
        RefusedError: INVALID_ARGUMENT, naming the first message and rule that is broken.
    """
    for position, message in enumerate(messages):
        attributes = message.attributes
        if attributes:
            _check_attributes(position, attributes)
        elif not message.data:
            raise invalid(f"message {position} is empty: it needs data or at least one attribute")
        if message.ordering_key:
            _check_size(position, "ordering key", message.ordering_key, MAX_ORDERING_KEY_BYTES)


def _check_attributes(position: int, attributes: Any) -> None:
    if len(attributes) > MAX_ATTRIBUTES:
        raise invalid(
            f"message {position} has {len(attributes)} attributes, at most {MAX_ATTRIBUTES} are allowed"
        )
    for key, value in attributes.items():
        if not key or key.startswith("goog"):
            raise invalid(
                f"message {position} has an attribute key that is empty or starts with 'goog': {key!r}"
            )
        _check_size(position, "attribute key", key, MAX_KEY_BYTES)
        _check_size(position, f"value of attribute {key!r}", value, MAX_VALUE_BYTES)


def _check_size(position: int, what: str, text: str, limit: int) -> None:
    size = len(text.encode())
    if size > limit:
        raise invalid(f"message {position}: its {what} has {size} bytes, at most {limit} are allowed")
