"""The pipelines as programs, between topics of Google's emulator."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from google.pubsub_v1.types import PubsubMessage

from beam_hedge import HedgingPublisher
from demo.airports import write_airports
from tests.pipelines.programs import figures, started

if TYPE_CHECKING:
    from pathlib import Path

    from tests.emulator.emulator import Emulator

MESSAGES = 10_000
# Beam's direct runner pulls ten messages at a time and takes milliseconds for each step of each pull.
MOST_SECONDS = 280


def feed(topic: str, messages: list[PubsubMessage]) -> None:
    """Publishes messages to a source."""
    with HedgingPublisher(topic, None) as publisher:
        for start in range(0, len(messages), 1000):
            publisher.publish(messages[start : start + 1000]).result(60)


def arrivals(emulator: Emulator, subscription: str, number: int) -> list[Any]:
    """Pulls until so many messages have arrived; leaves the processor to the pipeline meanwhile."""
    found: list[Any] = []
    end = time.monotonic() + MOST_SECONDS
    while len(found) < number and time.monotonic() < end:
        time.sleep(0.2)
        found += emulator.pull_all(subscription, 0)
    return found


@pytest.mark.timeout(MOST_SECONDS + 60)
def test_the_relay_moves_ten_thousand_messages_and_ends_when_interrupted(emulator_host: Emulator) -> None:
    """None is missing, attributes arrive, and Ctrl-C ends it within five seconds with its report."""
    source, target = emulator_host.create_topic(), emulator_host.create_topic()
    subscription = emulator_host.create_subscription(source)
    arrived = emulator_host.create_subscription(target)
    feed(
        source,
        [
            PubsubMessage(data=b"%d" % number, attributes={"n": str(number), "parity": "eo"[number % 2]})
            for number in range(MESSAGES)
        ],
    )
    flags = [f"--input_subscription={subscription}", f"--topic={target}", "--id_label=id", "--hedge_delay=10"]
    with started("pipelines.pubsub_to_pubsub", emulator_host.endpoint, *flags) as program:
        found = arrivals(emulator_host, arrived, MESSAGES)
        program.interrupt()
        status, said, complained = program.end(5)
    assert {(message.data, message.attributes["n"], message.attributes["parity"]) for message in found} == {
        (b"%d" % number, str(number), "eo"[number % 2]) for number in range(MESSAGES)
    }
    assert len({message.attributes["id"] for message in found}) == MESSAGES
    assert status == 130, complained
    counted = figures(said)
    assert counted["Messages read"] == counted["messages published in"] == MESSAGES
    assert counted["In interrupted bundles"] == 0


def test_the_relay_takes_what_pub_sub_itself_adds(emulator_host: Emulator) -> None:
    """Messages of ordered subscriptions, with traces and with schemas pass; what they lose is counted."""
    source, target = emulator_host.create_topic(), emulator_host.create_topic()
    subscription = emulator_host.create_subscription(source)
    arrived = emulator_host.create_subscription(target)
    traced = {"googclient_traceparent": "00-1", "googclient_schemaencoding": "JSON"}
    messages = [
        PubsubMessage(data=b"ordered", ordering_key="key"),
        PubsubMessage(data=b"traced", attributes={**traced, "a": "1"}),
        PubsubMessage(attributes=traced),
    ]
    # The library's own publisher refuses such messages.
    emulator_host._publisher.publish(topic=source, messages=messages)
    flags = [f"--input_subscription={subscription}", f"--topic={target}", "--ordering_key_attribute=key"]
    more = ["--rename_attributes=googclient_schemaencoding=encoding", "--filter_key=googclient_schemaencoding"]
    with started("pipelines.pubsub_to_pubsub", emulator_host.endpoint, *flags) as program:
        plain = arrivals(emulator_host, arrived, 2)
        program.interrupt()
        _, said, _ = program.end(60)
    assert {message.data: dict(message.attributes) for message in plain} == {
        b"ordered": {"key": "key"},
        b"traced": {"a": "1"},
    }
    assert {message.ordering_key for message in plain} == {""}
    counted = figures(said)
    assert counted["Ordering keys cleared"] == 1
    assert counted["Reserved attributes dropped"] == 4
    assert counted["Empty messages dropped"] == 1
    emulator_host._publisher.publish(topic=source, messages=messages)
    with started("pipelines.pubsub_to_pubsub", emulator_host.endpoint, *flags, *more) as program:
        renamed = arrivals(emulator_host, arrived, 2)
    assert {message.data: dict(message.attributes) for message in renamed} == {
        b"traced": {"a": "1", "encoding": "JSON"},
        b"": {"encoding": "JSON"},
    }


def test_the_file_pipeline_moves_a_real_data_set(emulator_host: Emulator, tmp_path: Path) -> None:
    """All airports of a public data set arrive, with the fields that were asked for as attributes."""
    topic = emulator_host.create_topic()
    arrived = emulator_host.create_subscription(topic)
    lines = write_airports(tmp_path / "airports.jsonl")
    flags = [
        f"--input={tmp_path}/*.jsonl",
        f"--topic={topic}",
        "--input_format=json",
        "--attribute_fields=iata,state",
    ]
    with started("pipelines.text_to_pubsub", emulator_host.endpoint, *flags, "--hedge_delay=10") as program:
        status, said, complained = program.end(MOST_SECONDS)
    assert status == 0, complained
    found = emulator_host.pull_all(arrived, len(lines))
    assert sorted(message.data for message in found) == sorted(lines)
    assert all(f'"iata": "{message.attributes["iata"]}"'.encode() in message.data for message in found)
    assert figures(said)["messages published in"] == len(lines) == len(found)
