"""The attributes that the sink adds: an id that duplicates share, and the time of the element."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.labels import Labels
from tests.unit.messages import attribute_maps
from tests.unit.refusals import assert_refused, kind

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELDS = pytest.mark.parametrize("field", ["id_label", "timestamp_attribute"])
NO_TEXTS: list[Any] = [1, 0, True, False, b"id", 1.5, ["id"], ("id",), {}, {"id": "x"}, object]
BAD_NAMES = ["", "goog", "googclient_id", "k" * 257, "\u00e9" * 129, "\ud800"]


def test_without_names_nothing_is_added() -> None:
    """A sink that was asked for no labels changes no message."""
    assert not Labels()
    assert Labels().of({"a": "1"}, "made", 5) == {}


@pytest.mark.parametrize("attributes", [None, {}, {"a": "1"}, {"id": ""}])
def test_a_message_without_an_id_gets_the_one_that_was_made(attributes: dict[str, str] | None) -> None:
    """Every message can be told from its duplicates, if its own id is empty or missing, too."""
    assert Labels("id").of(attributes, "made", 5) == {"id": "made"}


@pytest.mark.parametrize("own", ["mine", "0", " "])
def test_a_message_that_has_an_id_keeps_it(own: str) -> None:
    """A relay passes on the ids by which its source's duplicates are found."""
    assert Labels("id").of(MappingProxyType({"id": own, "a": "1"}), "made", 5) == {}


def test_another_attribute_is_no_id() -> None:
    """Only the attribute that the user named is looked at."""
    assert Labels("id").of({"ID": "mine", "id ": "mine"}, "made", 5) == {"id": "made"}


def test_where_no_id_was_made_none_is_added() -> None:
    """The empty text is never sent as an id, which would make all messages duplicates of each other."""
    assert Labels("id", "ts").of({"a": "1"}, None, 5) == {"ts": "5"}


@pytest.mark.parametrize(
    ("event_time_ms", "text"),
    [(0, "0"), (1, "1"), (-1000, "-1000"), (1_700_000_000_123, "1700000000123"), (10**16, "1" + "0" * 16)],
)
def test_the_timestamp_is_written_in_whole_milliseconds(event_time_ms: int, text: str) -> None:
    """Subscribers read the time in the form that Beam's source expects, before 1970, too."""
    assert Labels(timestamp_attribute="ts").of(None, None, event_time_ms) == {"ts": text}


def test_the_timestamp_replaces_one_that_is_there() -> None:
    """A relay that adds time of its own does not pass on a stale one."""
    assert Labels(timestamp_attribute="ts").of({"ts": "stale"}, None, 7) == {"ts": "7"}


def test_both_labels_go_together() -> None:
    """The id stays the message's own while the time is the element's."""
    labels = Labels("id", "ts")
    assert labels.of({}, "made", 7) == {"id": "made", "ts": "7"}
    assert labels.of({"id": "mine", "ts": "stale"}, "made", 7) == {"ts": "7"}


@pytest.mark.parametrize("labels", [Labels("id"), Labels(timestamp_attribute="ts"), Labels("id", "ts")])
def test_a_name_is_what_switches_labels_on(labels: Labels) -> None:
    """The sink takes the path that adds labels as soon as one is asked for."""
    assert labels


@FIELDS
@pytest.mark.parametrize("name", NO_TEXTS, ids=kind)
def test_a_name_that_is_no_text_is_refused(field: str, name: Any) -> None:
    """A slip such as id_label=True stops the launch, and not the first bundle."""
    assert_refused(field, name, lambda: Labels(**{field: name}))


@FIELDS
@pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
def test_a_name_that_no_attribute_can_have_is_refused(field: str, name: str) -> None:
    """A name that the service would refuse in each message stops the launch."""
    assert_refused(field, name, lambda: Labels(**{field: name}))


@FIELDS
@pytest.mark.parametrize("name", ["k" * 256, "\u00e9" * 128, "Google", "topic", "data", "ordering_key", " "])
def test_every_name_that_an_attribute_can_have_is_accepted(field: str, name: str) -> None:
    """The longest name, and names that look special, work as labels."""
    labels = Labels(**{field: name})
    assert labels.of({}, "made", 5) == {name: "made" if field == "id_label" else "5"}


def test_one_name_for_both_is_refused() -> None:
    """The time would overwrite the id, and duplicates could not be told any more."""
    name = "same"
    assert_refused("timestamp_attribute", name, lambda: Labels(name, name))


@given(attributes=attribute_maps, key=st.sampled_from(("id", "topic", "k" * 256)), made=st.text(min_size=1))
def test_a_labelled_message_always_has_one_id(attributes: Mapping[str, str], key: str, made: str) -> None:
    """Whatever attributes a message has, it ends with its own id or the made one, and loses none of them."""
    before = dict(attributes)
    labelled = {**attributes, **Labels(key).of(attributes, made, 0)}
    assert labelled == {**before, key: before.get(key) or made}
    assert attributes == before
