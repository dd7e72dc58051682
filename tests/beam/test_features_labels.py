"""`id_label` and `timestamp_attribute`, in batch and on every runner."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import grpc
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.transforms import window

from beam_hedge import WriteToPubSubHedged
from beam_hedge.testing import NEVER, Reply
from tests.beam.pipelines import RUNNERS, batches_of, run_pipeline
from tests.server.serving import EAGER, TOPIC, UNHURRIED, by_attempt, serving

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beam_hedge.testing import LocalPubSub

BOTH = pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
ELEMENTS = [b"same", b"same", b"other"]


def copies(server: LocalPubSub) -> dict[str, list[bytes]]:
    """Groups what was stored as a subscriber that removes duplicates would: by id."""
    groups: dict[str, list[bytes]] = defaultdict(list)
    for message in server.messages(TOPIC):
        groups[message.attributes["id"]].append(message.data)
    return groups


@pytest.mark.parametrize("runner", ["fn_api", "bundle_based", "threads"])
def test_an_id_is_equal_on_all_attempts(runner: str) -> None:
    """What a hedge stored twice can be told from two equal elements, and removed."""
    # The originals' messages are stored, and their answers are lost.
    with serving(by_attempt(NEVER, None)) as server:
        transform = WriteToPubSubHedged(TOPIC, EAGER, id_label="id", batch_settings=batches_of(1000))
        run_pipeline(ELEMENTS, transform, RUNNERS[runner])
        groups = copies(server)
        assert len(server.messages(TOPIC)) >= 2 * len(ELEMENTS)
    assert all(len(group) >= 2 and len(set(group)) == 1 for group in groups.values())
    assert Counter(group[0] for group in groups.values()) == {b"same": 2, b"other": 1}


def test_an_id_is_equal_in_a_bundle_that_the_runner_tries_again() -> None:
    """A failed bundle's messages that are stored already get no second identity."""
    lost = Reply(status=grpc.StatusCode.PERMISSION_DENIED, stored=True)
    with serving({1: lost, 2: lost}) as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, id_label="id", batch_settings=batches_of(1000))
        run_pipeline([b"a", b"a", b"b"], transform, RUNNERS["bundle_based"])
        groups = copies(server)
        assert len(server.messages(TOPIC)) > 3
    assert all(len(set(group)) == 1 for group in groups.values())
    assert Counter(group[0] for group in groups.values()) == {b"a": 2, b"b": 1}


def test_an_id_is_equal_when_the_write_step_is_repeated() -> None:
    """Ids are fixed before the step that publishes: a runner that repeats the step does not make new ones."""
    with serving() as server:
        options = ["--runner=FnApiRunner", "--direct_runner_bundle_repeat=2"]
        run_pipeline(ELEMENTS, WriteToPubSubHedged(TOPIC, UNHURRIED, id_label="id"), options)
        groups = copies(server)
    assert sorted(groups.values()) == [[b"other"] * 3, [b"same"] * 3, [b"same"] * 3]


@BOTH
def test_an_id_of_the_messages_own_is_kept(runner: str) -> None:
    """Who brings ids can remove duplicates of the source as well; an empty one is none."""
    messages = [
        PubsubMessage(b"own", {"id": "mine", "k": "v"}),
        PubsubMessage(b"empty", {"id": ""}),
        PubsubMessage(b"none", {}),
    ]
    with serving() as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, with_attributes=True, id_label="id")
        run_pipeline(messages, transform, RUNNERS[runner])
        stored = {message.data: message.attributes for message in server.messages(TOPIC)}
    assert stored[b"own"] == {"id": "mine", "k": "v"}
    made = [stored[b"empty"]["id"], stored[b"none"]["id"]]
    assert all(made)
    assert len({*made, "mine"}) == 3


def publish_timed(elements: Iterable[tuple[Any, float]], runner: str, **arguments: Any) -> None:
    """Publishes elements with timestamps."""
    with beam.Pipeline(runner=runner) as pipeline:
        _ = (
            pipeline
            | beam.Create(list(elements), reshuffle=False)
            | beam.MapTuple(window.TimestampedValue)
            | WriteToPubSubHedged(TOPIC, UNHURRIED, **arguments)
        )


@pytest.mark.parametrize("runner", ["FnApiRunner", "BundleBasedDirectRunner"])
@pytest.mark.parametrize("id_label", [None, "id"])
def test_the_timestamp_is_the_elements_own(runner: str, id_label: str | None) -> None:
    """Event time reaches subscribers in milliseconds since the epoch, before 1970 and beside an id, too."""
    with serving() as server:
        times = [(b"1.5", 1.5), (b"-1", -1), (b"1700000000.123", 1_700_000_000.123)]
        publish_timed(times, runner, timestamp_attribute="ts", id_label=id_label)
        stored = {message.data: message.attributes["ts"] for message in server.messages(TOPIC)}
    assert stored == {b"1.5": "1500", b"-1": "-1000", b"1700000000.123": "1700000000123"}


def test_the_timestamp_replaces_one_that_is_there() -> None:
    """A relay that adds time of its own does not pass on a stale one."""
    message = PubsubMessage(b"x", {"ts": "stale", "k": "v"})
    with serving() as server:
        publish_timed([(message, 2)], "FnApiRunner", timestamp_attribute="ts", with_attributes=True)
        assert [stored.attributes for stored in server.messages(TOPIC)] == [{"ts": "2000", "k": "v"}]
    assert message.attributes == {"ts": "stale", "k": "v"}


@BOTH
def test_an_element_without_a_time_gets_that_of_publishing(runner: str) -> None:
    """Elements of a source that knows no time are not dated to the beginning of Beam's calendar."""
    with serving() as server:
        before = time.time_ns() // 1_000_000
        run_pipeline([b"x"], WriteToPubSubHedged(TOPIC, UNHURRIED, timestamp_attribute="ts"), RUNNERS[runner])
        [message] = server.messages(TOPIC)
        assert before <= int(message.attributes["ts"]) <= time.time_ns() // 1_000_000


@pytest.mark.parametrize(("own", "fits"), [(98, True), (99, False)])
def test_labels_count_towards_the_limit_of_attributes(own: int, fits: bool) -> None:
    """A message is never refused by the service because of the attributes that the sink adds."""
    message = PubsubMessage(b"x", {f"a{number}": "" for number in range(own)})
    transform = WriteToPubSubHedged(
        TOPIC, UNHURRIED, with_attributes=True, id_label="id", timestamp_attribute="ts"
    )
    with serving() as server:
        if fits:
            run_pipeline([message], transform)
        else:
            with pytest.raises(Exception, match="101 attributes; at most 100 are allowed"):
                run_pipeline([message], transform)
        assert server.ledger().messages == fits


def test_a_label_that_a_message_has_already_counts_once() -> None:
    """A full message that brings its own id is published."""
    message = PubsubMessage(b"x", {"id": "mine", **{f"a{number}": "" for number in range(99)}})
    with serving() as server:
        run_pipeline([message], WriteToPubSubHedged(TOPIC, UNHURRIED, with_attributes=True, id_label="id"))
        assert len(server.messages(TOPIC)[0].attributes) == 100
