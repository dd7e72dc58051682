"""`pipelines.pubsub_to_pubsub` as a program, and how it ends."""

from __future__ import annotations

import signal

import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage

from beam_hedge.testing import NEVER
from tests.beam.relaying import NAME, feed, numbered, streaming_server, wait_for_messages
from tests.pipelines.programs import figures, started
from tests.server.serving import PATIENCE, TOPIC

MODULE = "pipelines.pubsub_to_pubsub"
FLAGS = [f"--input_subscription={NAME}", f"--topic={TOPIC}"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_in_full_flow_loses_nothing(number: signal.Signals) -> None:
    """What was taken from the subscription is published, the rest stays there, and the report says how much."""
    with streaming_server() as server:
        for _ in range(5):
            feed(numbered(1000))
        with started(MODULE, server.endpoint, *FLAGS) as program:
            wait_for_messages(server, 50)
            program.interrupt(number)
            status, said, complained = program.end(PATIENCE)
        stored = len(server.messages(TOPIC))
        published, left = server.ledger(TOPIC), server.unacknowledged(NAME)
    assert status == 128 + number
    assert said.startswith("INTERRUPTED: ")
    found = figures(said)
    assert found["Messages read"] == found["messages published in"] == stored == 5000 - left
    assert left > 0
    assert found["requests"] == published.requests
    assert found["In interrupted bundles"] == 0
    assert "Traceback" not in complained


def test_an_interrupt_with_nothing_to_do_ends_the_program() -> None:
    """A relay that waits for messages ends, too, with a complete report."""
    with streaming_server() as server:
        feed(numbered(30))
        with started(MODULE, server.endpoint, *FLAGS) as program:
            wait_for_messages(server, 30)
            program.interrupt()
            status, said, _ = program.end(PATIENCE)
    assert status == 130
    found = figures(said)
    assert found["messages published in"] == found["Messages read"] == 30
    assert found["In interrupted bundles"] == 0


def test_an_interrupt_of_a_stream_that_is_filtered_out_counts_all() -> None:
    """A relay of which nothing comes out ends between two pulls, not in the middle of one."""
    with streaming_server() as server:
        feed([PubsubMessage(b"first", {"k": "v"})])
        with started(MODULE, server.endpoint, *FLAGS, "--filter_key=k") as program:
            wait_for_messages(server, 1)
            for _ in range(5):
                feed([PubsubMessage(b"x", {})] * 1000)
            program.interrupt()
            status, said, _ = program.end(PATIENCE)
        left = server.unacknowledged(NAME)
    assert status == 130
    found = figures(said)
    assert found["messages published in"] == 1
    assert found["Filtered out"] == found["Messages read"] - 1
    assert found["Messages read"] + left == 5001


def test_what_could_not_be_finished_is_reported() -> None:
    """With a service that does not answer, an interrupt ends the program and tells how many messages hang."""
    with streaming_server() as server:
        feed(numbered(25))
        server.script = NEVER
        with started(MODULE, server.endpoint, *FLAGS) as program:
            server.wait_for(lambda ledger: ledger.open >= 1, topic=TOPIC, timeout=PATIENCE)
            program.interrupt()
            status, said, _ = program.end(PATIENCE)
        server.script = None
    assert status == 130
    found = figures(said)
    assert found["messages published in"] == 0
    assert found["In interrupted bundles"] == found["Messages read"] == 10


def test_a_second_interrupt_ends_it_at_once() -> None:
    """Who does not want to wait for the rest does not have to."""
    with streaming_server() as server:
        feed(numbered(1))
        server.script = NEVER
        with started(MODULE, server.endpoint, *FLAGS) as program:
            server.wait_for(lambda ledger: ledger.open >= 1, topic=TOPIC, timeout=PATIENCE)
            program.interrupt()
            program.interrupt(signal.SIGTERM)
            status, _, _ = program.end(PATIENCE)
        server.script = None
    assert status in (-signal.SIGTERM, 130)


def test_a_relay_that_fails_reports_what_is_lost() -> None:
    """Without its topic a relay fails with an error that names it, and tells which messages it had taken."""
    with streaming_server() as server:
        feed([PubsubMessage(b"x", {})] * 3)
        server.delete_topic(TOPIC)
        with started(MODULE, server.endpoint, *FLAGS) as program:
            status, said, complained = program.end(PATIENCE * 2)
    assert status == 1
    assert f"was not published to {TOPIC}: NOT_FOUND" in complained
    found = figures(said)
    assert said.startswith("FAILED: 0 messages published")
    assert found["In interrupted bundles"] == found["Messages read"] == 3
