"""LocalPubSub as a service to publish to: what it stores and what it refuses."""

from __future__ import annotations

import os
import socket
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.api_core import exceptions
from google.cloud.pubsub_v1 import PublisherClient

from beam_hedge.testing import LocalPubSub, RefusedError
from tests.server.conftest import TOPIC, ids, request

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.server.conftest import RawClient

    Serve = Callable[..., tuple[LocalPubSub, RawClient]]


def test_it_stores_what_the_official_client_publishes(serve: Serve) -> None:
    """Users find every field of every message, in the order of publishing."""
    server, _ = serve()
    before = datetime.now(timezone.utc)
    with server.environment(), PublisherClient() as client:
        given = [client.publish(TOPIC, b"%d" % number, number=str(number)).result() for number in range(3)]
    first, second, third = server.messages(TOPIC)
    assert [first.message_id, second.message_id, third.message_id] == given
    assert [first.data, second.data, third.data] == [b"0", b"1", b"2"]
    assert [first.attributes, third.attributes] == [{"number": "0"}, {"number": "2"}]
    assert [first.request, second.request, third.request] == [1, 2, 3]
    assert before - timedelta(seconds=1) <= first.publish_time <= second.publish_time <= third.publish_time


def test_it_stores_ordering_keys(serve: Serve) -> None:
    """Users can check the ordering key of each message."""
    server, client = serve()
    ids(client.send(request(b"a", b"b", ordering_key="device-1")))
    assert [message.ordering_key for message in server.messages(TOPIC)] == ["device-1", "device-1"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (request(), "no messages"),
        (request(b"a", b""), "message 1 is empty"),
        (request(*[b"x"] * 1_001), "1001 messages, at most 1000"),
        (request(b"x", attributes={"k": "é" * 513}), "value of attribute 'k' has 1026 bytes, at most 1024"),
        (request(b"x", attributes={"k" * 257: "v"}), "257 bytes, at most 256"),
        (request(b"x", attributes={"": "v"}), "empty or starts with 'goog'"),
        (request(b"x", attributes={"google": "v"}), "empty or starts with 'goog'"),
        (request(b"x", attributes={str(number): "v" for number in range(101)}), "101 attributes, at most 100"),
        (request(b"x", ordering_key="k" * 1_025), "ordering key has 1025 bytes, at most 1024"),
        (request(b"x", topic="out"), "expected projects/PROJECT/topics/ID"),
        (request(b"x", topic="projects/p-test/topics/a b"), "expected projects/PROJECT/topics/ID"),
        (request(b"x", topic="projects/p-test/topics/out\n"), "expected projects/PROJECT/topics/ID"),
        (request(b"x", topic="projects/p-test/topics/goog-out"), "expected projects/PROJECT/topics/ID"),
        (b"\xff", "not a PublishRequest"),
    ],
)
def test_it_refuses_what_the_service_refuses(serve: Serve, raw: bytes, words: str) -> None:
    """Users find out here, and not in production, that a request breaks a rule of Pub/Sub."""
    server, client = serve()
    call = client.send(raw)
    assert call.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert words in call.details()
    assert server.messages(TOPIC) == []


@pytest.mark.parametrize(
    "raw",
    [
        request(*[b"x"] * 1_000),
        request(b"", attributes={"k": "v"}),
        request(b"x", attributes={"k" * 256: "é" * 512}),
        request(b"x", attributes={str(number): "" for number in range(100)}),
        request(b"x", ordering_key="k" * 1_024),
    ],
)
def test_it_accepts_what_lies_just_within_the_limits(serve: Serve, raw: bytes) -> None:
    """Users are not refused what Pub/Sub accepts."""
    server, client = serve()
    assert ids(client.send(raw)) == [message.message_id for message in server.messages(TOPIC)]


def test_the_size_limit_counts_the_whole_request(serve: Serve) -> None:
    """Users learn that ten million bytes are a limit for the encoded request and not for the data."""
    server, client = serve()
    data = b"x" * (10_000_000 - len(request(b"x" * 9_000_000)) + 9_000_000)
    assert len(request(data)) == 10_000_000
    ids(client.publish(data))
    call = client.publish(data + b"x")
    assert call.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "10000001 bytes, at most 10000000" in call.details()
    assert len(server.messages(TOPIC)) == 1


def test_the_limit_of_grpc_itself_can_be_set(serve: Serve) -> None:
    """Users can meet the size error of a server that keeps gRPC's limit of 4 MiB."""
    _, client = serve(max_receive_bytes=4 << 20)
    call = client.publish(b"x" * 4_194_267)
    assert call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_unknown_topics_are_not_found_unless_told_otherwise(serve: Serve) -> None:
    """Users see a misspelt topic, or can do without making topics first."""
    other = "projects/p-test/topics/other"
    _, client = serve()
    assert client.publish(b"x", topic=other).code() == grpc.StatusCode.NOT_FOUND
    server, client = serve(auto_create_topics=True)
    ids(client.publish(b"x", topic=other))
    assert [message.data for message in server.messages(other)] == [b"x"]


def test_topics_can_be_made_found_listed_and_deleted(serve: Serve) -> None:
    """Users can administer topics with the official client."""
    server, _ = serve()
    names = [f"projects/p-test/topics/t{number}" for number in range(3)]
    with server.environment(), PublisherClient() as client:
        for name in names:
            assert client.create_topic(name=name).name == name
        with pytest.raises(exceptions.AlreadyExists):
            client.create_topic(name=names[0])
        assert client.get_topic(topic=names[0]).name == names[0]
        pages = client.list_topics(request={"project": "projects/p-test", "page_size": 2}).pages
        assert [[topic.name for topic in page.topics] for page in pages] == [[TOPIC, names[0]], names[1:]]
        assert list(client.list_topics(project="projects/p")) == []
        client.delete_topic(topic=names[0])
        for call in (client.get_topic, client.delete_topic):
            with pytest.raises(exceptions.NotFound):
                call(topic=names[0])
    with pytest.raises(RefusedError, match="NOT_FOUND"):
        server.messages(names[0])


def test_a_server_for_load_counts_without_keeping(serve: Serve) -> None:
    """Users can publish any amount without filling the memory of the server."""
    server, client = serve(keep_messages=False, record=0)
    assert len(ids(client.publish(b"a", b"b"))) == 2
    assert server.ledger().messages == 2
    assert server.messages(TOPIC) == []
    assert server.requests == ()
    with pytest.raises(RefusedError, match="FAILED_PRECONDITION"):
        server.create_subscription("projects/p-test/subscriptions/s", TOPIC)


def test_it_starts_again_on_its_port_with_its_messages(serve: Serve) -> None:
    """Users can test an outage: the server goes away and comes back as it was."""
    server, client = serve()
    ids(client.publish(b"before"))
    endpoint = server.endpoint
    server.stop()
    server.stop()
    assert client.publish(b"lost").code() == grpc.StatusCode.UNAVAILABLE
    server.start()
    assert server.endpoint == endpoint
    ids(client.publish(b"after", wait_for_ready=True))
    assert [message.data for message in server.messages(TOPIC)] == [b"before", b"after"]
    with pytest.raises(RuntimeError, match="runs already"):
        server.start()


def test_it_listens_on_the_loopback_address_only(serve: Serve) -> None:
    """Users open no port to the network by running a test."""
    server, _ = serve()
    host, _, port = server.endpoint.partition(":")
    assert host == "127.0.0.1"
    with pytest.raises(OSError, match=r".+"):
        socket.create_connection(("127.0.0.2", int(port)), timeout=1).close()


def test_a_port_in_use_is_an_error(serve: Serve) -> None:
    """Users are told that a port is taken instead of sharing it with another server."""
    server, _ = serve()
    port = int(server.endpoint.rpartition(":")[2])
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
        LocalPubSub(port).start()


@pytest.mark.parametrize("before", [None, "elsewhere:1"])
def test_the_environment_is_restored(serve: Serve, monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    """Users keep their own PUBSUB_EMULATOR_HOST, also when the block fails."""
    server, _ = serve()
    if before is None:
        monkeypatch.delenv("PUBSUB_EMULATOR_HOST", raising=False)
    else:
        monkeypatch.setenv("PUBSUB_EMULATOR_HOST", before)

    def fail_inside() -> None:
        with server.environment():
            assert os.environ["PUBSUB_EMULATOR_HOST"] == server.endpoint
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert os.environ.get("PUBSUB_EMULATOR_HOST") == before


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"store": "later"}, "store must be 'arrival' or 'answer', got 'later'"),
        ({"port": 65_536}, "port must be 0 to 65535, got 65536"),
        ({"record": -1}, "record must be 0 or more, got -1"),
        ({"handlers": 0}, "handlers must be 1 or more, got 0"),
        ({"pull_wait": -0.1}, "pull_wait must be 0 or more, got -0.1"),
        ({"profile": "quick"}, "got 'quick'"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    """Users are told which setting is wrong when they make the server."""
    with pytest.raises(ValueError, match=words):
        LocalPubSub(**settings)


def test_a_server_without_a_port_has_no_endpoint() -> None:
    """Users are told to start the server instead of connecting to port 0."""
    with pytest.raises(RuntimeError, match="start it first"):
        LocalPubSub().endpoint  # noqa: B018 - the property is what is tested
