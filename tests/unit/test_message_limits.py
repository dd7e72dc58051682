"""Pub/Sub's rules for one message: what is data, what is too large, and that errors hold no payload."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.errors import InvalidMessageError
from beam_hedge.message import check_fits, encode, encode_data, encode_message, encode_topic
from tests.unit.messages import AnyMessage, beam_message, decode, google_message, keys, values

TOPIC = "projects/p-test/topics/out"


@pytest.mark.parametrize(
    "empty", [b"", "", AnyMessage(b"", {}), AnyMessage(b"", None), AnyMessage(None, None), AnyMessage("", {})]
)
def test_c02_an_empty_message_is_refused(empty: Any) -> None:
    """A message with nothing in it does not reach the service, which would refuse its whole batch."""
    with pytest.raises(InvalidMessageError, match="data or attributes"):
        encode(empty)


def test_c02_a_label_does_not_make_an_empty_message_valid() -> None:
    """An element that is empty is told as such, whether or not the sink puts an id on it."""
    for message in (AnyMessage(b"", {}), AnyMessage(None, None)):
        with pytest.raises(InvalidMessageError, match="data or attributes"):
            encode_message(message, {"id": "7"})
    with pytest.raises(InvalidMessageError, match="data or attributes"):
        encode_data(b"", {"id": "7"})


def test_c02_a_message_may_have_attributes_only() -> None:
    """A message whose whole content is an attribute is sent."""
    for message in (
        AnyMessage(None, {"a": "1"}),
        beam_message(b"", {"a": "1"}),
        google_message(b"", {"a": "1"}),
    ):
        assert decode(encode_message(message)) == (b"", {"a": "1"})


@pytest.mark.parametrize("data", [1, 1.5, [b"x"], {"a": 1}, bytearray(b"x"), memoryview(b"x"), True, object()])
@pytest.mark.parametrize("attributes", [{}, None, {"k": "v"}])
def test_data_is_bytes_or_text(data: object, attributes: object) -> None:
    """Anything else as data is told by its type, with and without attributes."""
    with pytest.raises(InvalidMessageError, match=f"data must be bytes or str, got {type(data).__name__}"):
        encode_message(AnyMessage(data, attributes))


@pytest.mark.parametrize("data", [1, None, (b"x",)])
def test_an_element_is_bytes_or_text(data: Any) -> None:
    """A sink of bytes tells the type of an element that is none."""
    with pytest.raises(InvalidMessageError, match=f"data must be bytes or str, got {type(data).__name__}"):
        encode_data(data)


def test_a_message_where_data_is_expected_is_told_which_option_takes_it() -> None:
    """A user who forgot with_attributes=True is told about it."""
    with pytest.raises(InvalidMessageError, match="with_attributes=True takes PubsubMessage"):
        encode_data(beam_message(b"x", {}))  # type: ignore[arg-type]


@pytest.mark.parametrize("message", [1, None, ("x", {}), {"data": b"x"}, object()])
def test_what_is_no_message_is_told_by_its_type(message: Any) -> None:
    """A wrong element is told as such, not as an AttributeError."""
    with pytest.raises(InvalidMessageError, match=f"must be a PubsubMessage, got {type(message).__name__}"):
        encode(message)


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_text_that_utf_8_cannot_hold_is_refused(text: str) -> None:
    """Text that was decoded wrongly is told, with and without attributes, and not sent as something else."""
    for message in (text, AnyMessage(text, {"k": "v"}), AnyMessage(text, {})):
        with pytest.raises(InvalidMessageError, match="data holds a lone surrogate"):
            encode(message)


@pytest.mark.parametrize("make", [beam_message, google_message])
def test_an_ordering_key_is_refused_with_the_reason(make: Any) -> None:
    """A message that asks for order is not published without it."""
    message = make(b"x", {})
    message.ordering_key = "key"
    with pytest.raises(InvalidMessageError, match=r"ordering key, which this sink refuses.*out of order"):
        encode(message)


def test_c04_a_request_has_at_most_10_000_000_bytes() -> None:
    """The largest message that fits a request alone is taken, and one byte more is told in bytes."""
    topic = encode_topic(TOPIC)
    check_fits(topic, encode_data(b"x" * 9_999_962))
    with pytest.raises(
        InvalidMessageError, match="a request of 10000001 B when sent alone; at most 10000000 B"
    ):
        check_fits(topic, encode_data(b"x" * 9_999_963))


def test_no_error_holds_the_payload() -> None:
    """Logs do not get what users publish: an error names the attribute, and not its value."""
    for message in (
        AnyMessage(b"secret", {"k": "secret" * 300}),
        AnyMessage("secret\ud800", {"k": "v"}),
        AnyMessage(b"secret", {"k": "secret\ud800"}),
        AnyMessage(["secret"], {}),
        AnyMessage(b"secret", {}, "secret"),
    ):
        with pytest.raises(InvalidMessageError) as raised:
            encode_message(message)
        assert "secret" not in str(raised.value)
        # Python prints an error's cause, too, and UnicodeEncodeError's text is in it.
        assert raised.value.__suppress_context__ or raised.value.__context__ is None


_any_key: st.SearchStrategy[Any] = st.one_of(
    keys,
    st.sampled_from(("", "goog", "google", "k" * 257, "\ud800", 1, None, b"k")),
    st.text(st.characters(exclude_categories=()), max_size=100),
)
_any_value: st.SearchStrategy[Any] = st.one_of(
    values,
    st.sampled_from(("v" * 1025, "\u00e9" * 513, "\udfff", 1, None, b"v", True)),
    st.text(st.characters(exclude_categories=()), max_size=100),
)
_any_data: st.SearchStrategy[Any] = st.sampled_from((b"x", "x", b"", "", None, "\ud800", 1, bytearray(b"x")))


def _is_text(text: object, least: int, most: int) -> bool:
    if not isinstance(text, str) or any("\ud800" <= letter <= "\udfff" for letter in text):
        return False
    return least <= len(text.encode()) <= most


@given(
    data=_any_data,
    attributes=st.one_of(st.none(), st.dictionaries(_any_key, _any_value, max_size=3)),
    labels=st.one_of(st.none(), st.dictionaries(keys, values, max_size=2)),
)
def test_what_is_accepted_is_within_the_limits_and_all_that_is_within_is_accepted(
    data: Any, attributes: Any, labels: Any
) -> None:
    """The service never refuses what was accepted here, and nothing that it would take is kept from it."""
    both = {**(attributes or {}), **(labels or {})}
    allowed = (
        (data is None or isinstance(data, bytes) or _is_text(data, 0, 10_000))
        and bool(data or attributes)
        and all(_is_text(key, 1, 256) and not key.startswith("goog") for key in both)
        and all(_is_text(value, 0, 1024) for value in both.values())
    )
    try:
        encoded = encode_message(AnyMessage(data, attributes), labels)
    except InvalidMessageError:
        assert not allowed
    else:
        assert allowed
        assert decode(encoded) == ((data.encode() if isinstance(data, str) else data) or b"", both)
