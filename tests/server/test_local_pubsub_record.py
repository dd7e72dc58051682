"""What LocalPubSub writes down about publish calls: records and ledger."""

from __future__ import annotations

import base64
import threading
from concurrent import futures
from time import monotonic
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.pubsub_v1 import types

from beam_hedge.testing import NEVER, Ledger, Reply, SentMessage
from tests.server.conftest import TOPIC, ids, request

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.testing import LocalPubSub
    from tests.server.conftest import RawClient

    Serve = Callable[..., tuple[LocalPubSub, RawClient]]
    Connect = Callable[[LocalPubSub], RawClient]

TELEMETRY = "x-goog-pubsub-client-telemetry"


def test_a_record_holds_the_whole_request(serve: Serve) -> None:
    """Users can check every byte that their pipeline sends."""
    server, client = serve()
    raw = request(b"a", b"", attributes={"k": "v"}, ordering_key="o")
    before = monotonic()
    given = ids(client.send(raw, metadata=[("x-goog-request-params", "topic=t"), ("x-data-bin", b"\x00\xff")]))
    (record,) = server.requests
    assert (record.number, record.topic, record.raw, record.size) == (1, TOPIC, raw, len(raw))
    assert record.messages == (SentMessage(b"a", {"k": "v"}, "o"), SentMessage(b"", {"k": "v"}, "o"))
    assert record.metadata["x-goog-request-params"] == "topic=t"
    assert record.metadata["x-data-bin"] == b"\x00\xff"
    assert (record.status, record.message_ids) == (grpc.StatusCode.OK, tuple(given))
    assert record.ended is not None
    assert before <= record.arrival <= record.ended <= monotonic()
    assert repr(record) == f"<RequestRecord 1 {TOPIC} {len(raw)} B from {record.peer} OK>"


def test_a_record_tells_the_time_left(serve: Serve) -> None:
    """Users can check the deadline of every attempt, and that there is one."""
    server, client = serve()
    ids(client.publish(b"x"))
    ids(client.publish(b"x", timeout=1_000))
    without, within = server.requests
    assert without.time_left is None
    assert within.time_left is not None
    # gRPC sends a timeout in few digits, rounded up.
    assert 0 < within.time_left <= 1_020


def test_a_deadline_that_passes_cancels_the_call(serve: Serve) -> None:
    """Users see which attempts the server was still working on when the client gave up."""
    server, client = serve(script=NEVER)
    call = client.publish(b"x", timeout=0.05)
    assert call.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    server.wait_for(lambda ledger: ledger.cancelled == 1)
    assert server.requests[0].cancelled


def test_each_connection_has_a_peer_of_its_own(serve: Serve, connect: Connect) -> None:
    """Users can see which attempts went over which connection."""
    server, first = serve()
    second = connect(server)
    for client in (first, second, first):
        ids(client.publish(b"x"))
    peers = [record.peer for record in server.requests]
    assert peers[0] == peers[2] != peers[1]
    assert server.requests[0].peer == f"127.0.0.1:{server.requests[0].peer_port}"


def test_records_are_snapshots(serve: Serve) -> None:
    """Users can compare what they saw earlier with how a call ended."""
    release = threading.Event()
    server, client = serve(script=Reply(until=release))
    call = client.publish(b"x")
    server.wait_for(lambda ledger: ledger.open == 1)
    (early,) = server.requests
    assert "open" in repr(early)
    release.set()
    ids(call)
    assert early.ended is None
    assert server.requests[0].ended is not None


def test_only_the_last_records_are_kept(serve: Serve) -> None:
    """Users can run a server for long without filling its memory, and the counts stay exact."""
    server, client = serve(record=3)
    for number in range(10):
        ids(client.publish(b"%d" % number))
    assert [record.number for record in server.requests] == [8, 9, 10]
    assert server.ledger().requests == 10


def test_records_can_be_turned_off(serve: Serve) -> None:
    """Users can put load on the server and still read its ledger and latencies."""
    server, client = serve(record=0)
    ids(client.publish(b"x"))
    assert server.requests == ()
    assert server.ledger().answered == 1
    assert list(server.latencies) == [0.0]


@pytest.mark.parametrize(("attempt", "hedges"), [(0, 0), (1, 1), (7, 1)])
def test_hedges_are_told_by_their_header(serve: Serve, attempt: int, hedges: int) -> None:
    """Users can count the hedges that reach the server, whatever the client says about itself."""
    server, client = serve()
    telemetry: Any = types.PubsubClientTelemetry(publish_operation={"hedged_attempt_count": attempt})
    header = base64.b64encode(types.PubsubClientTelemetry.serialize(telemetry)).decode()
    ids(client.publish(b"x", metadata=[(TELEMETRY, header)]))
    assert server.requests[0].hedged_attempt_count == attempt
    assert server.ledger().hedges == hedges


@pytest.mark.parametrize("header", ["?", "/w=="])
def test_a_malformed_header_does_no_harm(serve: Serve, header: str) -> None:
    """Users of other clients are served as the real service would, and told when they ask."""
    server, client = serve()
    ids(client.publish(b"x", metadata=[(TELEMETRY, header)]))
    assert server.ledger().hedges == 0
    with pytest.raises(ValueError, match=r".+"):
        _ = server.requests[0].hedged_attempt_count


def test_a_call_without_the_header_tells_nothing(serve: Serve) -> None:
    """Users can see that a client sent no telemetry at all."""
    server, client = serve()
    ids(client.publish(b"x"))
    assert server.requests[0].hedged_attempt_count is None


def test_the_ledger_balances(serve: Serve) -> None:
    """Users can account for every request: answered, failed, cancelled or open."""
    script = {2: Reply(status=grpc.StatusCode.UNAVAILABLE), 3: NEVER, 4: NEVER}
    server, client = serve(script=script)
    ids(client.publish(b"a", b"b"))
    assert client.publish(b"c").code() == grpc.StatusCode.UNAVAILABLE
    cancelled, still_open = client.publish(b"d"), client.publish(b"e")
    server.wait_for(lambda ledger: ledger.open == 2)
    cancelled.cancel()
    ledger = server.wait_for(lambda ledger: ledger.cancelled == 1)
    size = len(request(b"a", b"b")) + 3 * len(request(b"x"))
    assert ledger == server.ledger()
    assert ledger == Ledger(
        requests=4,
        request_bytes=size,
        answered=1,
        failed={"UNAVAILABLE": 1},
        cancelled=1,
        open=1,
        messages=4,
    )
    assert not still_open.done()
    assert str(ledger) == (
        "requests 4 (hedges 0), answered 1, failed 1 UNAVAILABLE, cancelled 1, open 1; messages stored 4"
    )


def test_each_topic_has_a_ledger(serve: Serve) -> None:
    """Users can publish to two topics and count each by itself."""
    server, client = serve(auto_create_topics=True)
    other = "projects/p-test/topics/other"
    ids(client.publish(b"a"))
    ids(client.publish(b"a", b"b", topic=other))
    assert server.ledger(TOPIC).messages == 1
    assert server.ledger(other).messages == 2
    assert server.ledger(other + "-unknown") == Ledger()
    assert server.ledger().messages == 3


def test_the_ledger_is_exact_under_load(serve: Serve, connect: Connect) -> None:
    """Users can trust the counts when many threads publish at once."""
    server, _ = serve(profile="0.5:0,0.5:0.001", record=0)
    clients = [connect(server) for _ in range(4)]

    def publish(client: RawClient) -> None:
        for call in [client.publish(b"a", b"b") for _ in range(100)]:
            ids(call)

    with futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(publish, clients))
    ledger = server.ledger()
    assert (ledger.requests, ledger.answered, ledger.messages, ledger.open) == (400, 400, 800, 0)
    assert len({message.message_id for message in server.messages(TOPIC)}) == 800


def test_duplicates_are_counted_by_content_or_by_a_key(serve: Serve) -> None:
    """Users can tell copies of one message from messages that look alike."""
    server, client = serve()
    for raw in (
        request(b"a", b"b", attributes={"id": "1", "part": "x"}),
        request(b"a", attributes={"part": "x", "id": "1"}),
        request(b"a", attributes={"id": "2"}),
    ):
        ids(client.send(raw))
    assert server.duplicates(TOPIC) == 1
    assert server.duplicates(TOPIC, key=lambda message: message.data) == 2
    assert server.duplicates(TOPIC, key=lambda message: message.attributes["id"]) == 2
    assert server.duplicates(TOPIC, key=lambda message: message.message_id) == 0


def test_waiting_in_vain_tells_the_ledger(serve: Serve) -> None:
    """Users see in the error what the server has got instead."""
    server, client = serve()
    ids(client.publish(b"x"))
    with pytest.raises(TimeoutError, match="not so after 0 s; requests 1 "):
        server.wait_for(lambda ledger: ledger.requests == 2, timeout=0)
    assert "requests 1 " in repr(server)
