"""Dead letters: whatever a message was, what tells of it can be published."""

from __future__ import annotations

from typing import Any

from apache_beam.io.gcp.pubsub import PubsubMessage
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge import FailedMessage
from beam_hedge.message import check_fits, encode_message, encode_topic
from pipelines.dead_letter_topic import PublishDeadLetters, dead_letter
from pipelines.options import HedgingOptions
from tests.server.serving import TOPIC

DEAD = "projects/p-test/topics/dead"
# As the transform works it out.
ROOM = PublishDeadLetters(HedgingOptions([f"--topic={TOPIC}", f"--dead_letter_topic={DEAD}"]))._room
MOST = 10_000_000


def letter(element: bytes | PubsubMessage, reason: str = "a reason") -> PubsubMessage:
    """Makes the dead letter of an element, and makes sure that the sink takes it."""
    made = dead_letter(FailedMessage.of(element, reason), TOPIC, ROOM)
    check_fits(encode_topic(DEAD), encode_message(made))
    return made


TELLING = {
    "dead_letter_reason": "a reason",
    "dead_letter_status": "INVALID_ARGUMENT",
    "dead_letter_topic": TOPIC,
}


def test_a_message_keeps_what_it_has_and_gets_the_reason() -> None:
    """What was refused can be looked at, mended and sent again."""
    made = letter(PubsubMessage(b"data", {"a": "1"}))
    assert (made.data, made.attributes) == (b"data", {"a": "1", **TELLING})


def test_a_line_becomes_a_message() -> None:
    """A line that is no JSON arrives byte for byte."""
    made = letter(b"\xffline")
    assert (made.data, made.attributes) == (b"\xffline", TELLING)


def test_an_empty_message_can_be_told_of() -> None:
    """A message without data and attributes, which Pub/Sub takes from nobody, is no longer one."""
    assert letter(PubsubMessage(b"", {})).attributes == TELLING
    assert letter(b"").data == b""


def test_data_that_is_too_long_is_cut_and_its_length_told() -> None:
    """A line of any size leaves a trace of the size that a request can have, and not a byte less."""
    made = letter(b"x" * 20_000_000)
    assert made.attributes["dead_letter_data_bytes"] == "20000000"
    assert MOST - 200 < len(encode_topic(DEAD)) + len(encode_message(made)) <= MOST


def test_data_that_fits_is_not_cut() -> None:
    """The largest message that a request can carry is kept whole if its dead letter can carry it."""
    made = letter(b"x" * (MOST - 1000))
    assert len(made.data) == MOST - 1000
    assert "dead_letter_data_bytes" not in made.attributes


def test_attributes_that_break_a_limit_are_left_out_and_counted() -> None:
    """What keeps a message from one topic does not keep its dead letter from another."""
    bad: dict[str, Any] = {"k" * 257: "v", "v": "x" * 1025, "googx": "1", "": "1", "s": "\ud800"}
    made = letter(PubsubMessage(b"x", {"good": "1", **bad}))
    assert made.attributes == {"good": "1", **TELLING, "dead_letter_attributes_left_out": "5"}


def test_room_is_made_for_the_reason() -> None:
    """A message with more attributes than any may have keeps as many as find room."""
    made = letter(PubsubMessage(b"x" * 20_000_000, {f"k{number}": "v" for number in range(101)}))
    assert made.attributes["dead_letter_attributes_left_out"] == "6"
    assert len(made.attributes) == 100
    assert made.attributes["k0"] == "v"


def test_a_dead_letter_of_a_dead_letter_tells_the_last_reason() -> None:
    """Dead letters that are sent again, and refused again, do not pile up attributes."""
    once = letter(PubsubMessage(b"x", {"a": "1"}), "the first reason")
    twice = letter(once)
    assert twice.attributes["dead_letter_reason"] == "a reason"
    assert twice.attributes["a"] == "1"


@given(
    data=st.one_of(st.none(), st.binary(max_size=50), st.just(b"x" * (MOST - 500)), st.just(b"x" * 11_000_000)),
    attributes=st.dictionaries(
        st.one_of(st.text(max_size=300), st.sampled_from(["dead_letter_reason", "goog"])),
        st.one_of(st.text(max_size=20), st.just("\u00e9" * 512), st.just("x" * 1025)),
        max_size=120,
    ),
    reason=st.text(max_size=2000),
)
def test_any_message_leaves_a_dead_letter_that_can_be_published(
    data: bytes | None, attributes: dict[str, str], reason: str
) -> None:
    """No message can keep a pipeline from going on."""
    element = PubsubMessage(data if data or attributes else b"", attributes)
    made = letter(element, reason)
    assert (data or b"").startswith(made.data)
    # What the next subscriber is told is bounded, too.
    assert len(made.attributes["dead_letter_reason"].encode()) <= 1024
