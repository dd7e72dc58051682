"""`pipelines.pubsub_to_pubsub` from a subscription to a topic."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage

from pipelines import pubsub_to_pubsub
from tests.beam.relaying import NAME, SOURCE, feed, streaming_server, wait_for_messages
from tests.pipelines.flags import LAUNCHABLE
from tests.server.serving import PATIENCE, TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beam_hedge.testing import LocalPubSub, StoredMessage

DEAD = "projects/p-test/topics/dead"


@contextmanager
def relaying(*arguments: str) -> Iterator[None]:
    """Runs the pipeline in this process, and cancels it at the end."""
    given = [
        f"--input_subscription={NAME}",
        f"--topic={TOPIC}",
        "--runner=BundleBasedDirectRunner",
        "--streaming",
    ]
    options = LAUNCHABLE["pubsub_to_pubsub"].command_line(*given, *arguments).options()
    pipeline = beam.Pipeline(options=options)
    pubsub_to_pubsub.build(pipeline, options)
    running = pipeline.run()
    try:
        yield
    finally:
        running.cancel()


def relayed(server: LocalPubSub, number: int, topic: str = TOPIC) -> list[StoredMessage]:
    """Waits for so many messages of a topic, and returns all that are there, in the order of their data."""
    server.wait_for(lambda ledger: ledger.messages >= number, topic=topic, timeout=PATIENCE)
    return sorted(server.messages(topic), key=lambda message: message.data)


def test_messages_pass_with_their_data_and_attributes() -> None:
    """Subscribers of the target get all that subscribers of the source get."""
    messages = [PubsubMessage(b"%02d\xff" % number, {"n": str(number), "\u00e9": ""}) for number in range(25)]
    with streaming_server() as server:
        feed(messages)
        feed([PubsubMessage(b"", {"only": "attributes"})])
        with relaying():
            found = relayed(server, 26)
    assert [message.content for message in found[1:]] == [
        (message.data, frozenset(message.attributes.items())) for message in messages
    ]
    assert dict(found[0].attributes) == {"only": "attributes"}


def test_messages_are_filtered_and_their_attributes_changed() -> None:
    """All that flags ask for is done to one message after the other."""
    flags = [
        "--filter_key=country",
        "--filter_regex=N.",
        "--rename_attributes=country=land",
        '--add_attributes={"via": "a,b"}',
    ]
    with streaming_server() as server:
        feed([PubsubMessage(b"1", {"country": "NL"}), PubsubMessage(b"2", {"country": "BE"})])
        feed([PubsubMessage(b"3", {}), PubsubMessage(b"4", {"country": "NO", "via": "c"})])
        with relaying(*flags):
            found = relayed(server, 2)
    assert [(message.data, dict(message.attributes)) for message in found] == [
        (b"1", {"land": "NL", "via": "a,b"}),
        (b"4", {"land": "NO", "via": "a,b"}),
    ]


def test_ids_and_times_are_those_of_the_first_publishing() -> None:
    """A subscriber can remove copies, and knows when a message was published first."""
    with streaming_server() as server:
        feed([PubsubMessage(b"1", {}), PubsubMessage(b"2", {"id": "own"})])
        with relaying("--id_label=id", "--timestamp_attribute=ts"):
            found = relayed(server, 2)
        first, second = sorted(server.messages(SOURCE), key=lambda message: message.data)
    assert [message.attributes["id"] for message in found] == [first.message_id, "own"]
    published = [int(each.publish_time.timestamp() * 1000) for each in (first, second)]
    assert [int(message.attributes["ts"]) for message in found] == published


def test_what_cannot_be_published_goes_to_the_dead_letter_topic() -> None:
    """A message that an addition pushes over a limit stops nobody, and can be looked at with the reason."""
    full = {f"k{number:02}": "v" for number in range(100)}
    with streaming_server() as server:
        server.create_topic(DEAD)
        feed([PubsubMessage(b"1", {"a": "1"}), PubsubMessage(b"2", full), PubsubMessage(b"3", {})])
        with relaying(f"--dead_letter_topic={DEAD}", "--add_attributes=via=relay"):
            wait_for_messages(server, 2)
            (dead,) = relayed(server, 1, DEAD)
            assert [message.data for message in relayed(server, 2)] == [b"1", b"3"]
    assert dead.data == b"2"
    assert dead.attributes["dead_letter_reason"] == "a message has 101 attributes; at most 100 are allowed"
    assert dead.attributes["dead_letter_topic"] == TOPIC
    assert dead.attributes["dead_letter_attributes_left_out"] == "6"
