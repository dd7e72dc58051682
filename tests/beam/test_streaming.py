"""Streaming from Pub/Sub to Pub/Sub: many tiny bundles, a new DoFn for each, and one publisher under them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import grpc
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage

from beam_hedge import RetrySettings, WriteToPubSubHedged, lease
from beam_hedge.testing import NEVER, Reply
from beam_hedge.write_fn import WriteFn
from tests.beam.collecting import Collector
from tests.beam.relaying import (
    NAME,
    contents,
    feed,
    numbered,
    relayed,
    relaying,
    streaming_server,
    wait_for_messages,
)
from tests.server.serving import EAGER, PATIENCE, TOPIC, UNHURRIED, held

if TYPE_CHECKING:
    from beam_hedge.testing import RequestRecord


def test_many_tiny_bundles_share_one_publisher(monkeypatch: pytest.MonkeyPatch) -> None:
    """A DoFn for each bundle, one bucket and one set of connections for all; every message passes unchanged."""
    instances: list[int] = []
    setup = WriteFn.setup

    def counted(write_fn: WriteFn) -> None:
        instances.append(id(write_fn))
        setup(write_fn)

    monkeypatch.setattr(WriteFn, "setup", counted)
    messages = numbered(250)
    with streaming_server() as server:
        feed(messages)
        with relaying(WriteToPubSubHedged(TOPIC, UNHURRIED, with_attributes=True), with_attributes=True):
            wait_for_messages(server, 250)
            server.wait_until_acknowledged(NAME, timeout=PATIENCE)
        requests = server.ledger(TOPIC).requests
        peers = {record.peer_port for record in server.requests if record.topic == TOPIC}
        assert relayed(server) == contents(messages)
    # The source gives ten messages at most to a bundle.
    assert requests >= 25
    assert len(instances) >= 25
    assert 1 <= len(peers) <= 2
    [shared] = lease._registry._shared.values()
    # All bundles paid into one bucket.
    assert shared.bucket.milli_tokens == min(20_000 + 100 * requests, 50_000)


def test_messages_that_come_while_the_pipeline_runs_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipeline stays at work over idle times, also when its publisher was closed in one of them."""
    monkeypatch.setattr(lease._registry, "linger", 0.0)
    messages = numbered(6)
    with streaming_server() as server:
        with relaying(WriteToPubSubHedged(TOPIC, UNHURRIED, with_attributes=True), with_attributes=True):
            for number, message in enumerate(messages, 1):
                feed([message])
                wait_for_messages(server, number)
        assert relayed(server) == contents(messages)


def test_late_answers_are_hedged_in_streaming_too() -> None:
    """Bundles whose original hangs are finished by a hedge, and the stream goes on."""

    def script(record: RequestRecord) -> Reply | None:
        hangs = record.topic == TOPIC and not record.hedged_attempt_count and record.number % 3 == 0
        return Reply(never=True, stored=False) if hangs else None

    messages = numbered(60)
    with streaming_server() as server:
        feed(messages)
        server.script = script
        with relaying(WriteToPubSubHedged(TOPIC, EAGER, with_attributes=True), with_attributes=True):
            server.wait_for(
                lambda _: relayed(server).keys() == contents(messages).keys(), topic=TOPIC, timeout=PATIENCE
            )
        assert server.ledger(TOPIC).hedges >= 1
        server.wait_for(lambda ledger: not ledger.open, topic=TOPIC, timeout=PATIENCE)


def test_a_short_outage_delays_the_stream_and_loses_nothing() -> None:
    """Each bundle's first tries are refused; the runner sees one bundle that takes longer."""

    def script(record: RequestRecord) -> Reply | None:
        refused = record.topic == TOPIC and record.number % 4 != 0
        return Reply(status=grpc.StatusCode.UNAVAILABLE) if refused else None

    retry = RetrySettings(initial_retry_delay=0.01, max_retry_delay=0.02)
    messages = numbered(40)
    transform = WriteToPubSubHedged(TOPIC, None, with_attributes=True, retry_settings=retry)
    with streaming_server(script) as server:
        server.script = None
        feed(messages)
        server.script = script
        with relaying(transform, with_attributes=True):
            wait_for_messages(server, 40)
        assert relayed(server) == contents(messages)
        assert server.ledger(TOPIC).failed["UNAVAILABLE"] >= 4


def test_a_cancelled_pipeline_finishes_its_bundle_and_is_silent() -> None:
    """`cancel()` waits for the bundle that is out, which is published; after it nothing is sent any more."""
    messages = numbered(3)
    transform = WriteToPubSubHedged(TOPIC, UNHURRIED, with_attributes=True)
    with streaming_server(store="answer") as server, ThreadPoolExecutor(1) as pool:
        feed(messages)
        with relaying(transform, with_attributes=True) as running:
            with held(server):
                server.wait_for(lambda ledger: ledger.open == 1, topic=TOPIC, timeout=PATIENCE)
                cancelling = pool.submit(running.cancel)
                with pytest.raises(TimeoutError):
                    cancelling.result(0.3)
                assert server.messages(TOPIC) == []
            cancelling.result(PATIENCE)
            assert relayed(server) == contents(messages)
            feed(numbered(1))
            with pytest.raises(TimeoutError):
                server.wait_for(lambda ledger: ledger.requests > 1, topic=TOPIC, timeout=0.5)
        assert server.ledger(TOPIC).answered == 1
        assert server.unacknowledged(NAME) == 1


def test_a_bad_message_does_not_stop_the_stream() -> None:
    """With dead letters on, messages before and after a bad one pass; it comes out with its attributes."""
    messages = numbered(30)
    messages[7] = PubsubMessage(b"bad", {"n": "7", "refused": "yes"})

    def script(record: RequestRecord) -> Reply | None:
        refused = record.topic == TOPIC and any("refused" in message.attributes for message in record.messages)
        return Reply(status=grpc.StatusCode.INVALID_ARGUMENT, details="the schema says no") if refused else None

    failed = Collector()
    transform = WriteToPubSubHedged(TOPIC, UNHURRIED, with_attributes=True, dead_letter=True)
    with streaming_server(script) as server:
        feed(messages)
        with relaying(transform, failed=failed, with_attributes=True):
            wait_for_messages(server, 29)
        assert relayed(server) == contents(messages[:7] + messages[8:])
    [letter] = failed.values
    assert (letter.element.data, letter.element.attributes) == (b"bad", {"n": "7", "refused": "yes"})
    assert letter.reason == "the schema says no"


def test_ids_tell_copies_of_a_streamed_message() -> None:
    """With an id label, all copies that hedges stored carry one id, so a subscriber can remove them."""

    def script(record: RequestRecord) -> Reply | None:
        late = record.topic == TOPIC and not record.hedged_attempt_count
        # Stored at once and answered never: the hedge stores a copy.
        return NEVER if late else None

    messages = numbered(20)
    transform = WriteToPubSubHedged(TOPIC, EAGER, with_attributes=True, id_label="id")
    with streaming_server(script) as server:
        feed(messages)
        with relaying(transform, with_attributes=True):
            server.wait_for(lambda ledger: ledger.answered > 0, topic=TOPIC, timeout=PATIENCE)
            server.wait_for(
                lambda _: len({message.attributes["n"] for message in server.messages(TOPIC)}) == 20,
                topic=TOPIC,
                timeout=PATIENCE,
            )
        stored = server.messages(TOPIC)
        assert server.duplicates(TOPIC) > 0
    ids: dict[str, set[str]] = {}
    for message in stored:
        ids.setdefault(message.attributes["n"], set()).add(message.attributes["id"])
    assert len(ids) == 20
    assert all(len(each) == 1 for each in ids.values())
    assert len(set.union(*ids.values())) == 20
