"""Encoding: byte for byte what google's protobuf would send."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from google.pubsub_v1.types import PublishRequest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.message import encode, encode_data, encode_message, encode_topic
from tests.unit.messages import (
    AnyMessage,
    attribute_maps,
    beam_message,
    by_protobuf,
    decode,
    google_message,
    payloads,
    raw_message,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beam_hedge.message import MessageLike

_KINDS = (beam_message, google_message, raw_message)


@given(data=payloads.filter(bool))
def test_data_is_encoded_as_protobuf_does(data: bytes) -> None:
    """A payload of any bytes arrives as it was."""
    assert encode_data(data) == encode(data) == by_protobuf(data, {})
    assert decode(encode_data(data)) == (data, {})


@pytest.mark.parametrize("size", [1, 124, 125, 126, 127, 128, 16_380, 16_384, 2_097_148, 2_097_152, 9_999_962])
def test_data_of_each_length_of_its_head_is_encoded_as_protobuf_does(size: int) -> None:
    """Payloads at the lengths where the encoding grows by a byte arrive whole."""
    assert encode_data(b"d" * size) == by_protobuf(b"d" * size, {})


@given(text=st.text(min_size=1, max_size=80))
def test_text_is_sent_as_utf_8(text: str) -> None:
    """What is written as text is read as UTF-8, whatever it holds."""
    assert encode_data(text) == encode(text) == encode_data(text.encode())
    assert encode_message(AnyMessage(text, {"k": "v"})) == encode_message(AnyMessage(text.encode(), {"k": "v"}))


@pytest.mark.parametrize("text", ["a", "YWJj", "\u00e9"])
def test_c21_text_is_not_taken_for_base64(text: str) -> None:
    """Text arrives as it is written, also where it happens to look encoded."""
    assert decode(encode_data(text)) == (text.encode(), {})


@given(data=payloads, attributes=attribute_maps.filter(bool))
def test_a_message_with_attributes_is_encoded_as_protobuf_does(data: bytes, attributes: dict[str, str]) -> None:
    """Data and attributes of any text arrive as they were, in a request of the size that protobuf makes."""
    for make in _KINDS:
        encoded = encode_message(make(data, attributes))
        assert decode(encoded) == (data, attributes)
        assert len(encoded) == len(by_protobuf(data, attributes))
    assert encode_message(AnyMessage(data, attributes)) == by_protobuf(data, attributes)


@given(data=payloads.filter(bool), attributes=attribute_maps, labels=attribute_maps)
def test_labels_are_attributes_that_go_before_the_messages_own(
    data: bytes, attributes: dict[str, str], labels: dict[str, str]
) -> None:
    """What the sink puts on a message arrives, beside its own attributes or in their place."""
    both = {**attributes, **labels}
    own = dict(attributes)
    encoded = encode_message(AnyMessage(data, attributes), labels)
    assert decode(encoded) == (data, both)
    assert encoded == by_protobuf(data, both)
    assert encode_data(data, labels) == by_protobuf(data, labels)
    assert attributes == own


@given(messages=st.lists(st.tuples(payloads.filter(bool), attribute_maps), min_size=1, max_size=5))
def test_a_request_is_its_parts_joined(messages: list[tuple[bytes, dict[str, str]]]) -> None:
    """A whole request is byte for byte the one that google's client sends."""
    topic = "projects/p-test/topics/out"
    request = encode_topic(topic) + b"".join(
        encode_message(AnyMessage(data, attributes)) for data, attributes in messages
    )
    expected = PublishRequest.pb()(topic=topic)
    encoded = expected.SerializeToString()
    for data, attributes in messages:
        expected.messages.add(data=data, attributes=attributes)
        encoded += by_protobuf(data, attributes)
    assert request == encoded
    assert PublishRequest.pb().FromString(request) == expected
    assert len(request) == expected.ByteSize()


@pytest.mark.parametrize("make", _KINDS)
def test_a_message_without_attributes_is_its_data(
    make: Callable[[bytes, Mapping[str, str]], MessageLike],
) -> None:
    """A message of any kind without attributes costs no more bytes than its data."""
    assert encode_message(make(b"data", {})) == encode(make(b"data", {})) == encode_data(b"data")


def test_what_only_the_service_sets_is_left_out() -> None:
    """A message that was received can be published again, and gets a new id and time."""
    received = google_message(b"data", {"k": "v"})
    received.message_id = "17"
    received.publish_time = {"seconds": 5}  # type: ignore[assignment]
    assert encode_message(received) == encode_message(google_message(b"data", {"k": "v"}))


def test_c03_attributes_may_have_the_names_of_publishs_own_arguments() -> None:
    """No name of an attribute is taken for an option of the request."""
    attributes = {"topic": "t", "data": "d", "ordering_key": "z", "retry": "no", "timeout": "5", "self": "s"}
    for make in _KINDS:
        encoded = encode_message(make(b"x", attributes))
        assert decode(encoded) == (b"x", attributes)
        (message,) = PublishRequest.pb().FromString(encoded).messages
        assert message.ordering_key == ""


def test_a_message_that_is_changed_after_encoding_is_sent_as_it_was() -> None:
    """What a caller does with a message later does not reach the request."""
    message = AnyMessage(b"data", {"k": "v"})
    encoded = encode_message(message)
    message.attributes["k"] = "changed"
    assert decode(encoded) == (b"data", {"k": "v"})
