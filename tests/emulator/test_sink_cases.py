"""Cases from the field against Google's own emulator: what it takes, what it refuses, and what arrives."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import apache_beam as beam
import grpc
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage
from google.cloud.pubsub_v1.types import BatchSettings
from google.pubsub_v1 import PublisherClient, SchemaServiceClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.schema_service.transports import SchemaServiceGrpcTransport
from google.pubsub_v1.types import Encoding, Schema, SchemaSettings, Topic

from beam_hedge import HedgingSettings, WriteToPubSubHedged
from tests.beam.collecting import Collector, create, create_at, finish, make_pipeline, run_for_failed
from tests.beam.pipelines import RUNNERS, batches_of, close_publishers, counters, run_pipeline
from tests.issues.inputs import (
    BAD_ATTRIBUTES,
    LONGEST_VALUE,
    NAMED_AS_ARGUMENTS,
    TEXTS,
    WITH_EMPTY_ONES,
    fitting_data,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.emulator.emulator import Emulator

BOTH = pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])

# So late that nothing is hedged, on a busy machine either: what is pulled can be compared exactly.
UNHURRIED = HedgingSettings(hedge_delay=10)
LARGEST = BatchSettings(max_messages=1000, max_bytes=10_000_000, max_latency=600)
SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "n", "type": "int"}]}'


@pytest.fixture(autouse=True)
def no_lingering_publishers() -> Iterator[None]:
    """Close all publishers that the sink leased."""
    yield
    close_publishers()


@pytest.fixture
def orders(emulator_host: Emulator) -> Iterator[str]:
    """Return a topic that takes orders in JSON and refuses everything else."""
    schema = f"projects/{emulator_host.project}/schemas/orders"
    with grpc.insecure_channel(emulator_host.endpoint) as channel:
        schemas = SchemaServiceClient(transport=SchemaServiceGrpcTransport(channel=channel))
        schemas.create_schema(
            parent=f"projects/{emulator_host.project}",
            schema=Schema(name=schema, type_=Schema.Type.AVRO, definition=SCHEMA),
            schema_id="orders",
        )
        publisher = PublisherClient(transport=PublisherGrpcTransport(channel=channel))
        topic = f"projects/{emulator_host.project}/topics/orders"
        publisher.create_topic(
            request=Topic(name=topic, schema_settings=SchemaSettings(schema=schema, encoding=Encoding.JSON))
        )
        yield topic
        publisher.delete_topic(topic=topic)
        schemas.delete_schema(name=schema)


@BOTH
def test_c01_only_the_attributes_within_the_limits_arrive(emulator_host: Emulator, runner: str) -> None:
    """Bad attributes are dead letters on the way to a real Pub/Sub; the longest value there may be arrives."""
    topic = emulator_host.create_topic()
    subscription = emulator_host.create_subscription(topic)
    bad = [PubsubMessage(b"bad", attributes) for attributes, _ in BAD_ATTRIBUTES.values()]
    transform = WriteToPubSubHedged(topic, UNHURRIED, with_attributes=True, dead_letter=True)
    _, failed = run_for_failed([*bad, PubsubMessage(b"good", LONGEST_VALUE)], transform, runner)
    assert [letter.element for letter in failed] == bad
    [message] = emulator_host.pull_all(subscription, 1)
    assert (message.data, dict(message.attributes)) == (b"good", LONGEST_VALUE)


@BOTH
def test_c02_attributes_alone_are_a_message(emulator_host: Emulator, runner: str) -> None:
    """The service refuses empty messages with all others of their request; so none is sent to it."""
    topic = emulator_host.create_topic()
    subscription = emulator_host.create_subscription(topic)
    transform = WriteToPubSubHedged(topic, UNHURRIED, with_attributes=True, dead_letter=True)
    result, failed = run_for_failed(WITH_EMPTY_ONES, transform, runner)
    pulled = emulator_host.pull_all(subscription, 3)
    assert sorted((message.data, dict(message.attributes)) for message in pulled) == [
        (b"", {"a": "1"}),
        (b"a", {}),
        (b"c", {}),
    ]
    assert len(failed) == 2
    assert counters(result)["batches_failed"] == 0


@BOTH
def test_c03_names_of_arguments_are_attributes(emulator_host: Emulator, runner: str) -> None:
    """No attribute's name changes the call, and no ordering key appears."""
    topic = emulator_host.create_topic()
    subscription = emulator_host.create_subscription(topic)
    transform = WriteToPubSubHedged(topic, UNHURRIED, with_attributes=True)
    run_pipeline([PubsubMessage(b"x", NAMED_AS_ARGUMENTS)], transform, RUNNERS[runner])
    [message] = emulator_host.pull_all(subscription, 1)
    assert (dict(message.attributes), message.ordering_key) == (NAMED_AS_ARGUMENTS, "")


def test_c04_the_largest_requests_arrive(emulator_host: Emulator) -> None:
    """Five messages that just do not fit together, and one that just fits, all arrive."""
    topic = emulator_host.create_topic()
    subscription = emulator_host.create_subscription(topic)
    edge = fitting_data(topic)
    transform = WriteToPubSubHedged(topic, UNHURRIED, batch_settings=LARGEST, dead_letter=True)
    result, failed = run_for_failed([b"x" * 1_999_990] * 5 + [edge, edge + b"x"], transform)
    assert [len(letter.element) for letter in failed] == [len(edge) + 1]
    pulled = emulator_host.pull_all(subscription, 6)
    assert Counter(len(message.data) for message in pulled) == {1_999_990: 5, len(edge): 1}
    assert counters(result)["batches_published"] == 3


@BOTH
def test_c06_the_one_message_that_the_schema_refuses_comes_out(
    emulator_host: Emulator, orders: str, runner: str
) -> None:
    """A real refusal, by a topic's schema: nine of ten are published, and only the culprit is a dead letter."""
    subscription = emulator_host.create_subscription(orders)
    elements = [b'{"n": %d}' % number for number in range(1, 11)]
    elements[6] = b"this is no order"
    result, failed = run_for_failed(elements, WriteToPubSubHedged(orders, UNHURRIED, dead_letter=True), runner)
    pulled = emulator_host.pull_all(subscription, 9)
    assert sorted(message.data for message in pulled) == sorted(elements[:6] + elements[7:])
    assert [(letter.element, letter.status) for letter in failed] == [(elements[6], "INVALID_ARGUMENT")]
    assert counters(result)["publish_attempts"] <= 11
    assert counters(result)["retries"] == 0


def test_c06_without_dead_letters_the_schemas_refusal_is_the_error(orders: str) -> None:
    """The pipeline fails with what the service said, after one request."""
    with pytest.raises(Exception, match=r"INVALID_ARGUMENT after 1 attempt.*Could not parse message"):
        run_pipeline([b"this is no order"] * 2, WriteToPubSubHedged(orders, UNHURRIED))


@BOTH
def test_c19_dead_letters_keep_time_and_window(orders: str, runner: str) -> None:
    """What a schema refuses comes out in the window that it came in, with a bounded reason."""
    bad = b"no order" * 12_500
    timed = [(5, b'{"n": 1}'), (10, bad), (65, b'{"n": 2}'), (70, bad)]
    pipeline, failed = make_pipeline(runner), Collector()
    failed.take((create_at(pipeline, timed) | WriteToPubSubHedged(orders, UNHURRIED, dead_letter=True)).failed)
    finish(pipeline)
    assert sorted((each.time, each.window) for each in failed.seen) == [(10, (0, 60)), (70, (60, 120))]
    assert all(0 < len(each.reason.encode()) <= 1024 for each in failed.values)


@BOTH
def test_c21_text_arrives_as_utf8(emulator_host: Emulator, runner: str) -> None:
    """Text is not decoded as base64 on its way."""
    topic = emulator_host.create_topic()
    subscription = emulator_host.create_subscription(topic)
    run_pipeline(TEXTS, WriteToPubSubHedged(topic, UNHURRIED), RUNNERS[runner])
    pulled = emulator_host.pull_all(subscription, 3)
    assert sorted(message.data.decode() for message in pulled) == sorted(TEXTS)


def test_c22_large_messages_arrive_once_each(emulator_host: Emulator) -> None:
    """Messages of nearly 10 MB each, more than batches are made for, are published and pulled once each."""
    topic = emulator_host.create_topic()
    subscription = emulator_host.create_subscription(topic)
    pipeline = make_pipeline()
    # Made on the way: Beam would compress what the pipeline itself holds.
    large = create(pipeline, range(12)) | beam.Map(lambda number: b"%02d" % number * 4_950_000)
    _ = large | WriteToPubSubHedged(topic, UNHURRIED)
    finish(pipeline)
    pulled = emulator_host.pull_all(subscription, 12)
    assert Counter(message.data[:2] for message in pulled) == {b"%02d" % number: 1 for number in range(12)}
    assert {len(message.data) for message in pulled} == {9_900_000}


@BOTH
def test_ids_and_times_arrive(emulator_host: Emulator, runner: str) -> None:
    """Both labels are attributes that a real subscriber reads; all copies of a message would share the id."""
    topic = emulator_host.create_topic()
    subscription = emulator_host.create_subscription(topic)
    pipeline = make_pipeline(runner)
    transform = WriteToPubSubHedged(topic, UNHURRIED, id_label="id", timestamp_attribute="ts")
    _ = create_at(pipeline, [(number, b"%d" % number) for number in range(20)]) | transform
    finish(pipeline)
    pulled = emulator_host.pull_all(subscription, 20)
    assert {message.data: message.attributes["ts"] for message in pulled} == {
        b"%d" % number: str(number * 1000) for number in range(20)
    }
    assert len({message.attributes["id"] for message in pulled}) == 20


def test_topics_by_element_and_a_batch_for_each(emulator_host: Emulator) -> None:
    """Elements that choose their topics arrive in these, and in no other."""
    topics = [emulator_host.create_topic() for _ in range(3)]
    subscriptions = [emulator_host.create_subscription(topic) for topic in topics]
    elements = [b"%d" % number for number in range(30)]
    transform = WriteToPubSubHedged(
        lambda element: topics[int(element) % 3], UNHURRIED, batch_settings=batches_of(10)
    )
    pipeline = make_pipeline()
    _ = create(pipeline, elements) | transform
    assert counters(finish(pipeline))["batches_published"] == 3
    for number, subscription in enumerate(subscriptions):
        pulled = emulator_host.pull_all(subscription, 10)
        assert sorted(message.data for message in pulled) == sorted(elements[number::3])
