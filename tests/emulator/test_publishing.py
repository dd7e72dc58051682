"""Everything that the library publishes to Google's emulator is pulled from a subscription."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from google.pubsub_v1.types import PubsubMessage

from beam_hedge import HedgingPublisher, HedgingSettings, PublishError, WriteToPubSubHedged
from tests.beam.pipelines import RUNNERS, batches_of, close_publishers, run_pipeline

if TYPE_CHECKING:
    from tests.emulator.emulator import Emulator

ELEMENTS = [b"line %d" % number for number in range(300)]
PATIENCE = 60
SETTINGS = HedgingSettings(hedge_delay=0.1, initial_tokens=50)


@pytest.mark.parametrize("runner", RUNNERS)
def test_every_element_is_pulled(emulator_host: Emulator, monkeypatch: pytest.MonkeyPatch, runner: str) -> None:
    """No element is lost on its way through a real Pub/Sub, on any runner."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    topic = emulator_host.create_topic()
    subscription = emulator_host.create_subscription(topic)
    transform = WriteToPubSubHedged(topic, SETTINGS, batch_settings=batches_of(20))
    run_pipeline(ELEMENTS, transform, RUNNERS[runner])
    close_publishers()
    pulled = emulator_host.pull_all(subscription, len(ELEMENTS))
    # A hedge may have published some of them twice; that is allowed, a loss is not.
    assert {message.data for message in pulled} == set(ELEMENTS)


def test_every_element_is_pulled_once_without_hedging(emulator_host: Emulator) -> None:
    """Without hedging, and without failures, there are no duplicates either."""
    topic = emulator_host.create_topic()
    subscription = emulator_host.create_subscription(topic)
    run_pipeline(ELEMENTS, WriteToPubSubHedged(topic, None))
    close_publishers()
    pulled = emulator_host.pull_all(subscription, len(ELEMENTS))
    assert Counter(message.data for message in pulled) == Counter(ELEMENTS)


def test_the_publisher_returns_the_ids_that_subscribers_see(emulator_host: Emulator) -> None:
    """An outcome's ids are those of the messages, in their order, attributes and all."""
    topic = emulator_host.create_topic()
    subscription = emulator_host.create_subscription(topic)
    messages: list[bytes | str | PubsubMessage] = [
        PubsubMessage(data=b"\x00\xff" * 1000, attributes={"k": "é" * 512, "topic": "t"}),
        PubsubMessage(attributes={"only": "attributes"}),
        b"bytes",
        "grün",
    ]
    with HedgingPublisher(topic, None) as publisher:
        outcome = publisher.publish(messages).result(PATIENCE)
    pulled = {message.message_id: message for message in emulator_host.pull_all(subscription, 4)}
    assert len(outcome.message_ids) == 4
    arrived = [(pulled[one].data, dict(pulled[one].attributes)) for one in outcome.message_ids]
    assert arrived == [
        (b"\x00\xff" * 1000, {"k": "é" * 512, "topic": "t"}),
        (b"", {"only": "attributes"}),
        (b"bytes", {}),
        ("grün".encode(), {}),
    ]


def test_the_largest_request_is_published(emulator_host: Emulator) -> None:
    """A message that just fits into a request arrives."""
    topic = emulator_host.create_topic()
    subscription = emulator_host.create_subscription(topic)
    data = b"x" * 9_999_900
    with HedgingPublisher(topic, None) as publisher:
        publisher.publish([data]).result(PATIENCE)
    [message] = emulator_host.pull_all(subscription, 1)
    assert message.data == data


def test_a_topic_that_is_not_there_is_a_clear_error(emulator_host: Emulator) -> None:
    """The real service's answer to an unknown topic is final, and the error says what to do."""
    topic = f"projects/{emulator_host.project}/topics/nobody-made-this"
    with HedgingPublisher(topic) as publisher:
        error = publisher.publish([b"payload"]).exception(PATIENCE)
    assert isinstance(error, PublishError)
    assert (error.status, error.attempts) == (grpc.StatusCode.NOT_FOUND, 1)
    assert topic in str(error)
    assert "Create the topic" in str(error)
    with pytest.raises(Exception, match="NOT_FOUND"):
        run_pipeline([b"payload"], WriteToPubSubHedged(topic))
    close_publishers()
