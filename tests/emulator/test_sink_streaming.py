"""Streaming from Google's emulator to Google's emulator, as a pipeline does between two real topics."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from google.pubsub_v1.types import PubsubMessage

from beam_hedge import HedgingPublisher, HedgingSettings, WriteToPubSubHedged, lease
from beam_hedge.write_fn import WriteFn
from tests.beam.pipelines import close_publishers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.emulator.emulator import Emulator

PATIENCE = 60
UNHURRIED = HedgingSettings(hedge_delay=10)
WAKE = b"wake up"


@pytest.fixture(autouse=True)
def no_lingering_publishers() -> Iterator[None]:
    """Close all publishers that the sink leased."""
    yield
    close_publishers()


@contextmanager
def relaying(topic: str, subscription: str, transform: WriteToPubSubHedged, **read: Any) -> Iterator[None]:
    """Runs a streaming pipeline from a subscription to the sink, and cancels it at the end."""
    pipeline = beam.Pipeline(options=PipelineOptions(["--runner=BundleBasedDirectRunner", "--streaming"]))
    source = beam.io.ReadFromPubSub(subscription=subscription, with_attributes=True, **read)
    _ = pipeline | source | transform
    running = pipeline.run()
    try:
        yield
    finally:
        with ThreadPoolExecutor(1) as pool:
            ending = pool.submit(running.cancel)
            # The runner waits for its pull, and the emulator answers that after 30 s, or with a message.
            while not ending.done():
                feed(topic, [PubsubMessage(data=WAKE)])
                wait([ending], timeout=0.2)


def feed(topic: str, messages: list[PubsubMessage]) -> None:
    """Publishes messages to the source."""
    with HedgingPublisher(topic, None) as publisher:
        publisher.publish(messages).result(PATIENCE)


def test_every_message_passes_through_many_tiny_bundles(
    emulator_host: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A DoFn for each bundle, one publisher and one bucket under them, and all messages pass unchanged."""
    instances: list[int] = []
    setup = WriteFn.setup

    def counted(write_fn: WriteFn) -> None:
        instances.append(id(write_fn))
        setup(write_fn)

    monkeypatch.setattr(WriteFn, "setup", counted)
    source, target = emulator_host.create_topic(), emulator_host.create_topic()
    subscription = emulator_host.create_subscription(source)
    arrived = emulator_host.create_subscription(target)
    messages = [PubsubMessage(data=b"%d" % number, attributes={"n": str(number)}) for number in range(100)]
    feed(source, messages)
    with relaying(source, subscription, WriteToPubSubHedged(target, UNHURRIED, with_attributes=True)):
        # It waits for the last message.
        pulled = emulator_host.pull_all(arrived, 100)
    expected = Counter((message.data, message.attributes["n"]) for message in messages)
    assert Counter((message.data, message.attributes["n"]) for message in pulled) == expected
    assert len(instances) >= 10
    [shared] = [each for each in lease._registry._shared.values() if each.config.topic == target]
    assert shared.bucket.milli_tokens >= 10 * 100


def test_event_times_and_ids_pass(emulator_host: Emulator) -> None:
    """What one pipeline writes as labels, the next one can read as event times and tell copies by."""
    source, target = emulator_host.create_topic(), emulator_host.create_topic()
    subscription = emulator_host.create_subscription(source)
    arrived = emulator_host.create_subscription(target)
    now = time.time_ns() // 1_000_000
    feed(source, [PubsubMessage(data=b"%d" % n, attributes={"then": str(now + n)}) for n in range(20)])
    transform = WriteToPubSubHedged(
        target, UNHURRIED, with_attributes=True, id_label="id", timestamp_attribute="ts"
    )
    with relaying(source, subscription, transform, timestamp_attribute="then"):
        pulled = emulator_host.pull_all(arrived, 20)
    assert len(pulled) == 20
    assert all(message.attributes["ts"] == message.attributes["then"] for message in pulled)
    assert len({message.attributes["id"] for message in pulled}) == 20


def test_a_cancelled_pipeline_leaves_the_rest_to_the_next(emulator_host: Emulator) -> None:
    """After `cancel()` nothing is published; the next pipeline takes up what the subscription still has."""
    source, target = emulator_host.create_topic(), emulator_host.create_topic()
    subscription = emulator_host.create_subscription(source)
    arrived = emulator_host.create_subscription(target)
    transform = WriteToPubSubHedged(target, UNHURRIED, with_attributes=True)
    feed(source, [PubsubMessage(data=b"first")])
    with relaying(source, subscription, transform):
        [message] = emulator_host.pull_all(arrived, 1)
    assert message.data == b"first"
    feed(source, [PubsubMessage(data=b"second")])
    assert b"second" not in {message.data for message in emulator_host.pull_all(arrived, 0)}
    with relaying(source, subscription, transform):
        later: set[bytes] = set()
        # Messages that were to end the first pipeline may be among them.
        while b"second" not in later:
            later |= {message.data for message in emulator_host.pull_all(arrived, 1)}
    assert later <= {b"second", WAKE}
