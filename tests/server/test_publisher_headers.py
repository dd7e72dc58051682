"""What the server is told about each attempt."""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.pubsub_v1.types import PubsubClientTelemetry

from beam_hedge import HedgingPublisher, HedgingSettings, RetrySettings, __version__
from beam_hedge.telemetry import HEADER
from beam_hedge.testing import NEVER, Reply
from tests.server.serving import PATIENCE, TOPIC, all_ended, by_number, serving

if TYPE_CHECKING:
    from beam_hedge.testing import RequestRecord

_Telemetry: Any = PubsubClientTelemetry.pb()


def published_operation(record: RequestRecord) -> Any:
    """Decodes the telemetry header of an attempt."""
    return _Telemetry.FromString(base64.b64decode(record.metadata[HEADER], validate=True)).publish_operation


@pytest.fixture(scope="module")
def attempts() -> tuple[RequestRecord, ...]:
    """Return an original, its retry and two hedges of one batch of three messages."""
    script = by_number(Reply(status=grpc.StatusCode.UNAVAILABLE), NEVER, NEVER)
    settings = HedgingSettings(hedge_delay=0.6, initial_tokens=5)
    retry = RetrySettings(initial_retry_delay=0.01)
    with serving(script) as server, HedgingPublisher(TOPIC, settings, retry_settings=retry) as publisher:
        before = time.time()
        outcome = publisher.publish([b"\x00\xff", "grün", b"x" * 5000]).result(PATIENCE)
        records = all_ended(server, 4)
    assert (outcome.attempts, outcome.retries, outcome.hedges, outcome.winner) == (4, 1, 2, 2)
    assert before <= published_operation(records[0]).publish_start_time.ToNanoseconds() / 1e9 <= time.time()
    return records


def test_every_attempt_names_its_topic_for_routing(attempts: tuple[RequestRecord, ...]) -> None:
    """The service routes by this header: without it a request goes to another region or is refused."""
    assert {record.metadata["x-goog-request-params"] for record in attempts} == {f"topic={TOPIC}"}


def test_every_attempt_says_which_client_it_is(attempts: tuple[RequestRecord, ...]) -> None:
    """Support can tell from a request which client and versions sent it."""
    for record in attempts:
        client = str(record.metadata["x-goog-api-client"])
        assert "gl-python/" in client
        assert "gapic/" in client
        assert f"gccl/{__version__}" in client


def test_every_attempt_tells_its_number(attempts: tuple[RequestRecord, ...]) -> None:
    """An original and its retry are attempt 0, hedges count from 1."""
    counts = [published_operation(record).hedged_attempt_count for record in attempts]
    assert counts == [0, 0, 1, 2]


def test_every_attempt_tells_the_same_start_time(attempts: tuple[RequestRecord, ...]) -> None:
    """The service can tell how long the batch has waited in all."""
    starts = {published_operation(record).publish_start_time.ToNanoseconds() for record in attempts}
    assert len(starts) == 1


def test_all_attempts_carry_the_same_bytes(attempts: tuple[RequestRecord, ...]) -> None:
    """Whichever attempt wins, the subscriber gets what the caller published."""
    assert len({record.raw for record in attempts}) == 1
    assert [message.data for message in attempts[0].messages] == [b"\x00\xff", "grün".encode(), b"x" * 5000]


def test_an_emulator_gets_no_credentials(attempts: tuple[RequestRecord, ...]) -> None:
    """No token travels in plain text."""
    assert all("authorization" not in record.metadata for record in attempts)


def test_another_topic_is_routed_as_itself() -> None:
    """`publish(..., topic=)` reaches that topic, by body and by header."""
    other = "projects/p-test/topics/other"
    with serving() as server, HedgingPublisher(TOPIC) as publisher:
        server.create_topic(other)
        publisher.publish([b"x"], topic=other).result(PATIENCE)
        [record] = server.requests
    assert (record.topic, record.metadata["x-goog-request-params"]) == (other, f"topic={other}")


def test_a_topic_that_is_not_plain_text_is_escaped_for_routing() -> None:
    """A topic with odd characters in its name is routed as the client library would route it."""
    odd = "projects/p-test/topics/odd%20name+x"
    with serving() as server, HedgingPublisher(TOPIC) as publisher:
        server.create_topic(odd)
        publisher.publish([b"x"], topic=odd).result(PATIENCE)
        [record] = server.requests
    assert record.metadata["x-goog-request-params"] == "topic=projects/p-test/topics/odd%2520name%2Bx"


def test_without_hedging_the_attempt_is_still_told() -> None:
    """Plain publishing can be told from hedged publishing that sent no hedge by nothing but the settings."""
    with serving() as server, HedgingPublisher(TOPIC, None) as publisher:
        publisher.publish([b"x"]).result(PATIENCE)
        [record] = server.requests
    assert published_operation(record).hedged_attempt_count == 0
    assert published_operation(record).HasField("publish_start_time")
