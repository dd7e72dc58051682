"""Pub/Sub's limits on attributes, in bytes: both edges of each, and an error that names the attribute."""

from __future__ import annotations

import pytest

from beam_hedge.errors import InvalidMessageError
from beam_hedge.message import encode_message
from tests.unit.messages import AnyMessage, decode


def _encode(attributes: object) -> bytes:
    return encode_message(AnyMessage(b"x", attributes))


@pytest.mark.parametrize("letter", ["k", "\u00e9", "\u20ac", "\U0001f600"])
def test_a_key_has_at_most_256_bytes(letter: str) -> None:
    """The limit of a key counts bytes, not letters, and the error tells them."""
    size = len(letter.encode())
    longest = letter * (256 // size) + "k" * (256 % size)
    assert decode(_encode({longest: "v"})) == (b"x", {longest: "v"})
    with pytest.raises(InvalidMessageError, match=f"attribute key '{letter * 10}.* has 257 B; at most 256 B"):
        _encode({longest + "k": "v"})


@pytest.mark.parametrize("letter", ["v", "\u00e9", "\u20ac", "\U0001f600"])
def test_a_value_has_at_most_1024_bytes(letter: str) -> None:
    """The limit of a value counts bytes, not letters, and the error names the attribute and its size."""
    size = len(letter.encode())
    longest = letter * (1024 // size) + "v" * (1024 % size)
    assert decode(_encode({"name": longest})) == (b"x", {"name": longest})
    with pytest.raises(InvalidMessageError, match="attribute 'name' has a value of 1025 B; at most 1024 B"):
        _encode({"name": longest + "v"})


def test_a_message_has_at_most_100_attributes() -> None:
    """A message with as many attributes as the service takes is sent, and one more is told by number."""
    attributes = {f"k{number}": "v" for number in range(100)}
    assert decode(_encode(attributes)) == (b"x", attributes)
    with pytest.raises(InvalidMessageError, match="has 101 attributes; at most 100"):
        _encode({**attributes, "one more": "v"})


def test_labels_count_towards_the_100_attributes() -> None:
    """A label that makes a message too large is told before the service refuses it."""
    labels = {"id": "7", "time": "5"}
    attributes = {f"k{number}": "v" for number in range(98)}
    assert decode(encode_message(AnyMessage(b"x", attributes), labels)) == (b"x", {**attributes, **labels})
    attributes["k98"] = "v"
    with pytest.raises(InvalidMessageError, match="has 101 attributes"):
        encode_message(AnyMessage(b"x", attributes), labels)
    del attributes["k98"]
    # A label in place of an attribute of the same name makes no more of them.
    full = {**attributes, "id": "own", "time": "own"}
    assert decode(encode_message(AnyMessage(b"x", full), labels)) == (b"x", {**attributes, **labels})


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({"k": "\u00e9" * 600}, "'k' has a value of 1200 B"),
        ({"\u043a\u043b\u044e\u0447" * 40: "v"}, "has 320 B; at most 256 B"),
        ({"n": 1}, "'n' must have a str value, got int"),
        ({"b": True}, "'b' must have a str value, got bool"),
        ({"x": None}, "'x' must have a str value, got NoneType"),
        ({"y": b"v"}, "'y' must have a str value, got bytes"),
        ({"s": "\ud800"}, "'s' holds a lone surrogate"),
        ({"\ud800": "s"}, r"key '\\ud800' holds a lone surrogate"),
        ({"": "v"}, "key must not be empty"),
        ({1: "v"}, "key must be a str, got int"),
        ({None: "v"}, "key must be a str, got NoneType"),
        ({b"k": "v"}, "key must be a str, got bytes"),
        ({True: "v"}, "key must be a str, got bool"),
        ({"goog": "v"}, "'goog' starts with 'goog'"),
        ({"googclient_x": "v"}, "'googclient_x' starts with 'goog'"),
        ([("k", "v")], "attributes must be a mapping, got list"),
        ([], "attributes must be a mapping, got list"),
        ("", "attributes must be a mapping, got str"),
    ],
    ids=repr,
)
def test_c01_each_wrong_attribute_is_named(attributes: object, told: str) -> None:
    """A message that the service would refuse with its whole batch is refused here, by the attribute's name."""
    with pytest.raises(InvalidMessageError, match=told):
        _encode(attributes)


@pytest.mark.parametrize("key", ["Goog", "goo", "go", "not goog", " goog"])
def test_c01_control_what_is_near_a_limit_passes(key: str) -> None:
    """Names that only look like reserved ones, and the longest value in letters of two bytes, are sent."""
    attributes = {key: "\u00e9" * 512}
    assert decode(_encode(attributes)) == (b"x", attributes)


def test_an_error_names_a_huge_key_in_short() -> None:
    """A key of any length makes a short error."""
    with pytest.raises(InvalidMessageError) as raised:
        _encode({"k" * 1_000_000: "v"})
    assert len(str(raised.value)) < 300
