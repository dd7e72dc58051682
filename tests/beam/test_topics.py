"""A sink whose elements choose their topics: batches for each topic, and one budget under all of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage

from beam_hedge import WriteToPubSubHedged, lease
from tests.beam.collecting import Collector, create, finish, make_pipeline
from tests.beam.pipelines import batches_of, counters
from tests.server.serving import TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    from apache_beam.runners.runner import PipelineResult

BOTH = pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
PREFIX = "projects/p-test/topics/"


def by_region(message: PubsubMessage) -> str:
    """Returns the topic of a message by one of its attributes."""
    return f"{PREFIX}{message.attributes['region']}"


def by_first_letter(element: bytes) -> str:
    """Returns the topic of a payload."""
    return f"{PREFIX}t-{chr(element[0])}"


def publish(elements: list[bytes], transform: WriteToPubSubHedged, runner: str = "fn_api") -> PipelineResult:
    """Publishes elements, in one bundle and in their order."""
    pipeline = make_pipeline(runner)
    _ = create(pipeline, elements) | transform
    return finish(pipeline)


@BOTH
def test_batches_are_filled_for_each_topic(runner: str) -> None:
    """Elements of several topics in turn make full batches, not one request each."""
    elements = [b"%s%d" % (letter, number) for number in range(25) for letter in (b"a", b"b", b"c")]
    with serving() as server:
        for letter in "abc":
            server.create_topic(f"{PREFIX}t-{letter}")
        transform = WriteToPubSubHedged(by_first_letter, UNHURRIED, batch_settings=batches_of(10))
        result = publish(elements, transform, runner)
        sizes = Counter((record.topic[-1], len(record.messages)) for record in server.requests)
        for record in server.requests:
            assert {by_first_letter(message.data) for message in record.messages} == {record.topic}
    assert sizes == {(letter, size): number for letter in "abc" for size, number in ((10, 2), (5, 1))}
    assert counters(result)["messages_published"] == 75


def test_all_topics_pay_into_one_bucket() -> None:
    """A topic with little traffic can be hedged from what the others have earned."""
    with serving() as server:
        for letter in "abcde":
            server.create_topic(f"{PREFIX}t-{letter}")
        transform = WriteToPubSubHedged(by_first_letter, UNHURRIED, batch_settings=batches_of(1))
        publish([b"a", b"b", b"c", b"d", b"e", b"a"], transform)
        assert server.ledger().requests == 6
    [shared] = lease._registry._shared.values()
    assert shared.bucket.milli_tokens == 20_000 + 6 * 100


@BOTH
def test_the_function_sees_the_element_as_it_came(runner: str) -> None:
    """Labels are put on afterwards: a function of the element works the same with and without them."""
    messages = [PubsubMessage(b"%d" % number, {"region": "eu" if number % 2 else "us"}) for number in range(6)]
    transform = WriteToPubSubHedged(
        by_region, UNHURRIED, with_attributes=True, id_label="id", timestamp_attribute="ts"
    )
    with serving() as server:
        for region in ("eu", "us"):
            server.create_topic(PREFIX + region)
        pipeline = make_pipeline(runner)
        _ = create(pipeline, messages) | transform
        finish(pipeline)
        assert sorted(message.data for message in server.messages(PREFIX + "eu")) == [b"1", b"3", b"5"]
        stored = server.messages(PREFIX + "eu") + server.messages(PREFIX + "us")
    assert all(message.attributes.keys() == {"region", "id", "ts"} for message in stored)
    assert len({message.attributes["id"] for message in stored}) == 6


@pytest.mark.parametrize("dead_letter", [False, True])
def test_a_topic_that_is_missing_fails_the_bundle(dead_letter: bool) -> None:
    """A topic that does not exist is named in the error, and its messages are nobody's dead letters."""
    with serving() as server:
        server.create_topic(f"{PREFIX}t-a")
        transform = WriteToPubSubHedged(by_first_letter, UNHURRIED, dead_letter=dead_letter)
        with pytest.raises(Exception, match=f"not published to {PREFIX}t-b: NOT_FOUND"):
            publish([b"a", b"b"], transform)


@BOTH
def test_outcomes_name_their_topic(runner: str) -> None:
    """A later step can tell which topic each batch went to."""
    with serving() as server:
        for letter in "ab":
            server.create_topic(f"{PREFIX}t-{letter}")
        pipeline, published = make_pipeline(runner), Collector()
        transform = WriteToPubSubHedged(by_first_letter, UNHURRIED, with_outcomes=True)
        published.take((create(pipeline, [b"a1", b"b1", b"a2"]) | transform).published)
        finish(pipeline)
    told: Counter[str] = Counter()
    for outcome in published.values:
        told[outcome.topic] += len(outcome.message_ids)
    assert told == {f"{PREFIX}t-a": 2, f"{PREFIX}t-b": 1}


def test_a_function_that_raises_fails_the_bundle_as_itself() -> None:
    """An error in the user's own function is not taken for a bad message."""
    with serving() as server:
        transform = WriteToPubSubHedged(by_region, UNHURRIED, with_attributes=True, dead_letter=True)
        pipeline = make_pipeline()
        _ = create(pipeline, [PubsubMessage(b"x", {"k": "v"})]) | transform
        with pytest.raises(KeyError, match="region"):
            finish(pipeline)
        assert server.ledger().requests == 0
        assert server.messages(TOPIC) == []
