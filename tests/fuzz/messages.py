"""Messages of any kind, most of them near a limit of Pub/Sub, and a judge of its own of what is allowed.

The limits are those of https://cloud.google.com/pubsub/quotas#resource_limits, in bytes.
"""

from __future__ import annotations

from typing import Any

from apache_beam.io.gcp.pubsub import PubsubMessage as BeamMessage
from google.pubsub_v1.types import PubsubMessage
from hypothesis import strategies as st

from tests.fuzz.anything import any_text, anything

MOST_ATTRIBUTES, MOST_KEY_BYTES, MOST_VALUE_BYTES = 100, 256, 1_024
MOST_MESSAGES, MOST_REQUEST_BYTES = 1_000, 10_000_000

_LETTERS = ("x", "\u00e9", "\u20ac", "\U0001f600")


def _near(limit: int) -> st.SearchStrategy[str]:
    """Texts of about `limit` bytes, of letters of one to four bytes."""
    return st.builds(
        lambda letter, bytes_, more: letter * (bytes_ // len(letter.encode())) + more,
        st.sampled_from(_LETTERS),
        st.integers(limit - 3, limit + 3),
        st.sampled_from(("", "x", "xx", "\u00e9")),
    )


_keys = st.one_of(
    any_text,
    _near(MOST_KEY_BYTES),
    st.sampled_from(("", "k", "goog", "google", "Goog", "googclient_id", "go\u00f6g", "\x00")),
)
_values = st.one_of(any_text, _near(MOST_VALUE_BYTES), st.just(""))
_few = st.dictionaries(_keys, _values, max_size=3)
_many = st.builds(
    lambda count, own: {**{f"key {number}": "v" for number in range(count)}, **own},
    st.integers(MOST_ATTRIBUTES - 2, MOST_ATTRIBUTES + 1),
    st.dictionaries(_keys, _values, max_size=1),
)
attributes = st.one_of(_few, _few, _many)
data = st.one_of(st.binary(max_size=80), st.just(b""))


def _google_message(body: bytes, given: dict[str, str]) -> Any:
    try:
        return PubsubMessage(data=body, attributes=given)
    except (UnicodeError, ValueError, TypeError):
        # Protobuf itself takes no lone surrogates.
        return BeamMessage(body, given)


plausible: st.SearchStrategy[Any] = st.one_of(
    data,
    any_text,
    st.builds(BeamMessage, data, attributes),
    st.builds(BeamMessage, data, attributes),
    st.builds(_google_message, data, attributes),
)
# What is no message at all, or one with something odd in it.
odd: st.SearchStrategy[Any] = st.one_of(
    anything,
    st.builds(
        BeamMessage, st.one_of(data, anything), st.one_of(attributes, anything), st.one_of(any_text, anything)
    ),
    st.builds(
        BeamMessage, data, st.dictionaries(st.one_of(_keys, st.integers(), st.binary()), anything, max_size=2)
    ),
)


def _is_utf8(text: object) -> bool:
    return isinstance(text, str) and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _attribute_is_allowed(key: Any, value: Any) -> bool:
    if not (_is_utf8(key) and _is_utf8(value)):
        return False
    size = len(key.encode())
    reserved = key.startswith("goog")
    return 1 <= size <= MOST_KEY_BYTES and not reserved and len(value.encode()) <= MOST_VALUE_BYTES


def is_allowed(message: Any) -> bool:
    """Whether Pub/Sub takes a message."""
    body: Any = message
    given: Any = {}
    order: Any = ""
    if hasattr(message, "attributes"):
        body = b"" if message.data is None else message.data
        given = {} if message.attributes is None else message.attributes
        order = message.ordering_key
    if order or not hasattr(given, "items") or not (isinstance(body, bytes) or _is_utf8(body)):
        return False
    if not body and not given:
        return False
    return len(given) <= MOST_ATTRIBUTES and all(_attribute_is_allowed(*pair) for pair in given.items())
