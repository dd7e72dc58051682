"""How a relay changes attributes, and how flags write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from beam_hedge import InvalidMessageError, message
from pipelines import attributes
from pipelines.attributes import Changed, Changes, additions, names, renames, why_no_name, why_no_value

if TYPE_CHECKING:
    from collections.abc import Callable


def apply(
    given: dict[str, str],
    renamed: dict[str, str] | None = None,
    added: dict[str, str] | None = None,
    own: dict[str, str] | None = None,
) -> Changed:
    """Applies changes to attributes."""
    return Changes(renamed or {}, added or {}).apply(given, own or {})


def test_without_changes_attributes_stay_as_they_are() -> None:
    """A relay without flags hands on all of a message's attributes."""
    given = {"a": "1", "\u00e9": "", "topic": "x"}
    assert apply(given) == Changed(given, reserved=0, replaced=0)


def test_attributes_are_renamed() -> None:
    """Subscribers of another team find the name that they expect."""
    assert apply({"a": "1", "b": "2"}, {"a": "c"}) == Changed({"b": "2", "c": "1"}, 0, 0)


def test_a_rename_of_what_is_not_there_changes_nothing() -> None:
    """Messages without the attribute are relayed all the same."""
    assert apply({"b": "2"}, {"a": "b"}) == Changed({"b": "2"}, 0, 0)


def test_all_renames_are_done_at_once() -> None:
    """Two attributes can swap their names, and a chain moves each by one."""
    assert apply({"a": "1", "b": "2"}, {"a": "b", "b": "a"}) == Changed({"b": "1", "a": "2"}, 0, 0)
    assert apply({"a": "1", "b": "2"}, {"a": "b", "b": "c"}) == Changed({"b": "1", "c": "2"}, 0, 0)


def test_what_is_renamed_takes_the_place_of_what_was_there() -> None:
    """A collision has one outcome, and the attribute that is lost is counted."""
    assert apply({"a": "1", "b": "2"}, {"a": "b"}) == Changed({"b": "1"}, 0, 1)


def test_what_is_added_takes_the_place_of_what_was_there() -> None:
    """An attribute that a relay adds has the same value on each message."""
    assert apply({"a": "1"}, added={"a": "2", "b": "3"}) == Changed({"a": "2", "b": "3"}, 0, 1)
    assert apply({"a": "1"}, own={"a": "2"}) == Changed({"a": "2"}, 0, 1)


def test_reserved_attributes_are_left_out_and_counted() -> None:
    """A message that Pub/Sub gave attributes for schemas or traces can be relayed."""
    given = {
        "googclient_schemaencoding": "JSON",
        "googclient_traceparent": "00-1",
        "goog": "",
        "a": "1",
        "xgoog": "",
    }
    assert apply(given) == Changed({"a": "1", "xgoog": ""}, 3, 0)


def test_a_reserved_attribute_can_be_kept_under_another_name() -> None:
    """Who needs what Pub/Sub put there renames it."""
    changed = apply({"googclient_schemaencoding": "JSON"}, {"googclient_schemaencoding": "encoding"})
    assert changed == Changed({"encoding": "JSON"}, 0, 0)


def test_limits_are_those_of_the_sink() -> None:
    """What a flag accepts, the sink does not refuse later."""
    ours = (attributes.MAX_ATTRIBUTES, attributes.MAX_KEY_BYTES, attributes.MAX_VALUE_BYTES)
    assert ours == (message.MAX_ATTRIBUTES, message.MAX_KEY_BYTES, message.MAX_VALUE_BYTES)


@pytest.mark.parametrize("text", ["", "x" * 257, "\u00e9" * 129, "goog", "googleid", "\ud800"])
def test_names_that_no_attribute_can_have(text: str) -> None:
    """A name is refused in bytes, not in characters, and before anything runs."""
    assert why_no_name(text) is not None
    with pytest.raises(InvalidMessageError):
        message.check_attribute_name(text)


@pytest.mark.parametrize("text", ["a", "x" * 256, "\u00e9" * 128, "Goog", "a b", " ", "a=b"])
def test_names_that_an_attribute_can_have(text: str) -> None:
    """No name is refused that Pub/Sub takes."""
    assert why_no_name(text) is None
    message.check_attribute_name(text)


def test_values_are_checked_in_bytes() -> None:
    """Both edges of the limit: 1,024 bytes pass and one more does not."""
    assert why_no_value("\u00e9" * 512) is None
    assert why_no_value("") is None
    assert why_no_value("\u00e9" * 512 + "x") == "has 1025 B: at most 1024 B are allowed"
    assert why_no_value("\ud800") is not None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=b", {"a": "b"}),
        ("a=b,c=d", {"a": "b", "c": "d"}),
        (" a = b , c=d ", {"a": "b", "c": "d"}),
        ("a=b=c", {"a": "b=c"}),
        ('{"a": "b,c=d", " e": ""}', {"a": "b,c=d", " e": ""}),
        (" {}", {}),
    ],
)
def test_pairs_are_written_in_two_ways(text: str, found: dict[str, str]) -> None:
    """A short form for the usual, JSON for what holds commas or spaces."""
    assert additions(text) == found


def test_an_added_value_can_be_empty_and_a_new_name_cannot() -> None:
    """Pub/Sub takes attributes without a value, and none without a name."""
    assert additions("a=") == {"a": ""}
    with pytest.raises(ValueError, match="the new name '' is empty"):
        renames("a=")


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (names, "a,,b", "'' is empty"),
        (names, "a,b,a", "different names"),
        (additions, "a", "'a' has no '='"),
        (additions, "a=1,b", "'b' has no '='"),
        (additions, "a=1,a=2", "'a' comes twice"),
        (additions, '{"a": {"b": "c"}}', "'a' has another value"),
        (additions, '{"a": "1"} x', "Extra data"),
        (additions, "googa=1", "starts with 'goog'"),
        (renames, "a=b,c=b", "different new names"),
        (renames, "a=googb", "starts with 'goog'"),
        (renames, "{" * 100_000, "JSON object"),
    ],
)
def test_what_is_wrong_is_said(read: Callable[[str], object], text: str, said: str) -> None:
    """The message tells which part of a long flag is to be mended."""
    with pytest.raises(ValueError, match="must ") as error:
        read(text)
    assert said in str(error.value)
