"""Streaming pipelines from a source in the embedded Pub/Sub, through the sink, to a topic beside it."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.options.pipeline_options import PipelineOptions

from beam_hedge import HedgingPublisher
from tests.server.serving import PATIENCE, TOPIC, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apache_beam.runners.runner import PipelineResult

    from beam_hedge import WriteToPubSubHedged
    from beam_hedge.testing import LocalPubSub
    from tests.beam.collecting import Collector

SOURCE = "projects/p-test/topics/source"
NAME = "projects/p-test/subscriptions/source-sub"


@contextmanager
def streaming_server(script: Any = None, **settings: Any) -> Iterator[LocalPubSub]:
    """Runs a server that also has a source; a pull that finds nothing returns soon."""
    with serving(script, pull_wait=0.05, **settings) as server:
        server.create_topic(SOURCE)
        server.create_subscription(NAME, SOURCE)
        yield server


@contextmanager
def relaying(
    transform: WriteToPubSubHedged, *steps: Any, failed: Collector | None = None, **read: Any
) -> Iterator[PipelineResult]:
    """Runs a streaming pipeline from the source through some steps to the sink, and cancels it at the end."""
    options = PipelineOptions(["--runner=BundleBasedDirectRunner", "--streaming"])
    pipeline = beam.Pipeline(options=options)
    elements: Any = pipeline | beam.io.ReadFromPubSub(subscription=NAME, **read)
    for step in steps:
        elements = elements | step
    result = elements | transform
    if failed is not None:
        failed.take(result.failed)
    running = pipeline.run()
    try:
        yield running
    finally:
        running.cancel()


def feed(messages: list[PubsubMessage]) -> None:
    """Publishes messages to the source."""
    with HedgingPublisher(SOURCE, None) as publisher:
        publisher.publish(messages).result(PATIENCE)


def wait_for_messages(server: LocalPubSub, number: int) -> None:
    """Waits until so many messages have been relayed."""
    server.wait_for(lambda ledger: ledger.messages >= number, topic=TOPIC, timeout=PATIENCE)


def relayed(server: LocalPubSub) -> Counter[tuple[bytes, frozenset[tuple[str, str]]]]:
    """Returns data and attributes of all messages that were relayed, and how often each was."""
    return Counter(message.content for message in server.messages(TOPIC))


def numbered(count: int) -> list[PubsubMessage]:
    """Makes messages with attributes."""
    return [PubsubMessage(b"%d" % number, {"n": str(number), "k": "\u00e9"}) for number in range(count)]


def contents(messages: list[PubsubMessage]) -> Counter[tuple[bytes, frozenset[tuple[str, str]]]]:
    """Returns what `relayed` has to be after messages were relayed once each."""
    return Counter((message.data, frozenset(message.attributes.items())) for message in messages)
