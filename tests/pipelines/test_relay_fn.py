"""What a relay makes of a message, without a runner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage

from pipelines import relay_fn
from pipelines.attributes import Changes
from pipelines.counters import TALLY
from pipelines.message_filter import MessageFilter
from pipelines.relay_fn import RelayFn

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def clean_tally() -> Iterator[None]:
    """Start each test with nothing counted."""
    TALLY.clear()
    yield
    TALLY.clear()


def relay(message: PubsubMessage, **settings: Any) -> list[PubsubMessage]:
    """Gives a message to the step, and returns what comes out."""
    usual = {
        "message_filter": MessageFilter(),
        "changes": Changes({}, {}),
        "id_label": None,
        "ordering_key_attribute": None,
        "drop_empty": True,
    }
    return list(RelayFn(**{**usual, **settings}).process(message))


def counted() -> dict[str, int]:
    """Returns what was counted, beside messages that were read."""
    counts = TALLY.counts()
    assert counts.pop("messages_read") == 1
    return dict(counts)


def test_data_and_attributes_go_on_unchanged() -> None:
    """Subscribers of the target see what subscribers of the source see."""
    (message,) = relay(PubsubMessage(b"\x00\xff", {"a": "1"}, message_id="7", ordering_key=""))
    assert (message.data, message.attributes) == (b"\x00\xff", {"a": "1"})
    # Only the service sets these.
    assert (message.message_id, message.publish_time, message.ordering_key) == (None, None, "")
    assert counted() == {}


def test_a_message_of_attributes_alone_goes_on() -> None:
    """Signals without data are messages, too."""
    (message,) = relay(PubsubMessage(None, {"a": "1"}))
    assert (message.data, message.attributes) == (b"", {"a": "1"})
    (message,) = relay(PubsubMessage(b"x", None))
    assert (message.data, message.attributes) == (b"x", {})


def test_what_is_filtered_out_is_counted() -> None:
    """The number of messages that a filter held back can be looked up."""
    assert relay(PubsubMessage(b"x", {"k": "w"}), message_filter=MessageFilter("k", "v")) == []
    assert counted() == {"messages_filtered_out": 1}


def test_the_filter_sees_attributes_as_they_came() -> None:
    """A filter works whatever attributes are called afterwards, and on reserved ones."""
    changes = Changes({"k": "renamed"}, {"k": "added"})
    (message,) = relay(PubsubMessage(b"", {"k": "v"}), message_filter=MessageFilter("k", "v"), changes=changes)
    assert message.attributes == {"renamed": "v", "k": "added"}
    reserved = PubsubMessage(b"x", {"googclient_schemaencoding": "JSON"})
    assert len(relay(reserved, message_filter=MessageFilter("googclient_schemaencoding", "JSON"))) == 1


def test_an_ordering_key_is_cleared_and_counted() -> None:
    """Messages of an ordered subscription are relayed, and that order ends here can be seen."""
    (message,) = relay(PubsubMessage(b"x", {"a": "1"}, ordering_key="key"))
    assert (message.ordering_key, message.attributes) == ("", {"a": "1"})
    assert counted() == {"ordering_keys_cleared": 1}


def test_an_ordering_key_can_be_kept_as_an_attribute() -> None:
    """The longest key fits into an attribute; a message without one gets no attribute."""
    (message,) = relay(PubsubMessage(b"x", {}, ordering_key="k" * 1024), ordering_key_attribute="order")
    assert message.attributes == {"order": "k" * 1024}
    (message,) = relay(PubsubMessage(b"x", {}), ordering_key_attribute="order")
    assert message.attributes == {}


def test_reserved_attributes_are_dropped_and_counted() -> None:
    """A message from a topic with a schema or with traces does not stop a relay for ever."""
    traced = {"googclient_traceparent": "00-1", "googclient_schemaencoding": "JSON", "a": "1"}
    (message,) = relay(PubsubMessage(b"x", traced))
    assert message.attributes == {"a": "1"}
    assert counted() == {"reserved_attributes_dropped": 2}


@pytest.mark.parametrize("drop_empty", [True, False])
def test_a_message_with_nothing_left_is_dropped_unless_there_is_a_place_for_it(drop_empty: bool) -> None:
    """An empty message with a trace can be published nowhere: it is counted, or becomes a dead letter."""
    empty = PubsubMessage(b"", {"googclient_traceparent": "00-1"})
    assert len(relay(empty, drop_empty=drop_empty)) == (0 if drop_empty else 1)
    dropped = {"empty_messages_dropped": 1} if drop_empty else {}
    assert counted() == {"reserved_attributes_dropped": 1, **dropped}


def test_the_message_id_becomes_the_id() -> None:
    """A message that the subscription delivers twice has the same id both times, so that one can be removed."""
    (message,) = relay(PubsubMessage(b"x", {"a": "1"}, message_id="123"), id_label="id")
    assert message.attributes == {"a": "1", "id": "123"}


def test_an_id_that_a_message_brings_is_kept() -> None:
    """The id of the first publisher of several in a row is the one that stays; an empty one is none."""
    (message,) = relay(PubsubMessage(b"x", {"id": "own"}, message_id="123"), id_label="id")
    assert message.attributes == {"id": "own"}
    (message,) = relay(PubsubMessage(b"x", {"id": ""}, message_id="123"), id_label="id")
    assert message.attributes == {"id": "123"}
    (message,) = relay(
        PubsubMessage(b"x", {"key": "own"}, message_id="123"), id_label="id", changes=Changes({"key": "id"}, {})
    )
    assert message.attributes == {"id": "own"}


def test_a_source_without_message_ids_gets_ids_that_differ() -> None:
    """Two messages are never taken for copies of each other."""
    ids = {relay(PubsubMessage(b"x", {}), id_label="id")[0].attributes["id"] for _ in range(2)}
    assert len(ids) == 2


def test_the_message_that_was_read_is_not_changed() -> None:
    """A bundle that is tried again starts from the same messages."""
    message = PubsubMessage(b"x", {"a": "1"}, message_id="5")
    relay(message, id_label="id", changes=Changes({"a": "b"}, {"c": "d"}))
    assert message.attributes == {"a": "1"}


@pytest.mark.parametrize(("value", "ends"), [("v", 0), ("w", 1)])
def test_a_bundle_that_is_filtered_out_is_a_place_to_end(
    value: str, ends: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt finds the end of a bundle of which later steps hear nothing; others end behind the sink."""
    ended: list[None] = []
    monkeypatch.setattr(relay_fn, "end_here", lambda: ended.append(None))
    step = RelayFn(
        message_filter=MessageFilter("k", "v"),
        changes=Changes({}, {}),
        id_label=None,
        ordering_key_attribute=None,
        drop_empty=True,
    )
    for _ in range(2):
        step.start_bundle()
        for attribute in ("w", value, "w"):
            list(step.process(PubsubMessage(b"x", {"k": attribute})))
        step.finish_bundle()
    assert len(ended) == 2 * ends
