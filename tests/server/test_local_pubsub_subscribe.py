"""LocalPubSub as a service to subscribe to, with the official client."""

from __future__ import annotations

import queue
import threading
from concurrent import futures
from typing import TYPE_CHECKING, Any

import pytest
from google.api_core import exceptions
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient, types

from tests.server.conftest import TOPIC, ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beam_hedge.testing import LocalPubSub
    from tests.server.conftest import RawClient

    Serve = Callable[..., tuple[LocalPubSub, RawClient]]

NAME = "projects/p-test/subscriptions/s"


@pytest.fixture
def subscriber(serve: Serve) -> Iterator[tuple[LocalPubSub, RawClient, Any]]:
    """A server with one subscription, a client that publishes and the official client that subscribes."""
    server, client = serve(pull_wait=0.05)
    server.create_subscription(NAME, TOPIC)
    with server.environment(), SubscriberClient() as subscriber:
        yield server, client, subscriber


def pulled(subscriber: Any, most: int = 10) -> list[Any]:
    """Returns what one pull delivers."""
    return list(subscriber.pull(subscription=NAME, max_messages=most, timeout=20).received_messages)


def test_pulled_messages_are_complete(subscriber: tuple[LocalPubSub, RawClient, Any]) -> None:
    """Users receive each message as the server stored it."""
    server, client, official = subscriber
    ids(client.publish(b"a", b"b"))
    received = [each.message for each in pulled(official)]
    assert [(message.message_id, message.data) for message in received] == [
        (message.message_id, message.data) for message in server.messages(TOPIC)
    ]
    assert received[0].publish_time == server.messages(TOPIC)[0].publish_time


def test_acknowledged_messages_do_not_come_again(subscriber: tuple[LocalPubSub, RawClient, Any]) -> None:
    """Users work through a subscription once."""
    server, client, official = subscriber
    ids(client.publish(b"a", b"b", b"c"))
    first = pulled(official, 2)
    assert server.unacknowledged(NAME) == 3
    official.acknowledge(subscription=NAME, ack_ids=[each.ack_id for each in first])
    assert [each.message.data for each in pulled(official)] == [b"c"]
    assert pulled(official) == []
    assert server.unacknowledged(NAME) == 1


def test_refused_messages_come_again(subscriber: tuple[LocalPubSub, RawClient, Any]) -> None:
    """Users can hand a message back, under a new ack id."""
    _, client, official = subscriber
    ids(client.publish(b"a"))
    (first,) = pulled(official)
    official.modify_ack_deadline(subscription=NAME, ack_ids=[first.ack_id], ack_deadline_seconds=0)
    (second,) = pulled(official)
    assert second.message == first.message
    assert second.ack_id != first.ack_id


def test_an_empty_pull_returns_soon_and_with_nothing(subscriber: tuple[LocalPubSub, RawClient, Any]) -> None:
    """Users of Beam's source are not failed by a deadline when there is nothing to read."""
    assert pulled(subscriber[2]) == []


def test_a_pull_that_waits_gets_what_is_published_then(serve: Serve) -> None:
    """Users do not miss a message that comes a moment after they asked."""
    server, client = serve(pull_wait=20)
    server.create_subscription(NAME, TOPIC)
    with (
        server.environment(),
        SubscriberClient() as official,
        futures.ThreadPoolExecutor() as pool,
    ):
        waiting = pool.submit(pulled, official)
        ids(client.publish(b"late"))
        assert [each.message.data for each in waiting.result(20)] == [b"late"]


def test_a_waiting_pull_ends_when_the_server_stops(serve: Serve) -> None:
    """Users never wait for a subscriber when they stop the server."""
    server, _ = serve(pull_wait=100_000)
    server.create_subscription(NAME, TOPIC)
    with server.environment(), SubscriberClient() as official:
        arrived = threading.Event()
        # The future of the stub and not the client's method, which would retry.
        pull = official.transport.grpc_channel.unary_unary("/google.pubsub.v1.Subscriber/Pull")
        request = types.PullRequest(subscription=NAME, max_messages=1)
        call = pull.future(types.PullRequest.serialize(request))
        call.add_done_callback(lambda _: arrived.set())
        server.stop()
        assert arrived.wait(20)
        assert server.handler_threads == 0


def test_streaming_delivers_everything_and_takes_acknowledgements(
    subscriber: tuple[LocalPubSub, RawClient, Any],
) -> None:
    """Users can subscribe with a callback, which sees each message once if it acknowledges."""
    server, client, official = subscriber
    ids(client.publish(*[b"%d" % number for number in range(250)]))
    seen: queue.Queue[bytes] = queue.Queue()

    def receive(message: Any) -> None:
        seen.put(message.data)
        message.ack()

    streaming = official.subscribe(NAME, receive, flow_control=types.FlowControl(max_messages=20))
    ids(client.publish(b"250"))
    server.wait_until_acknowledged(NAME, timeout=20)
    streaming.cancel()
    streaming.result(timeout=20)
    received = sorted(int(seen.get_nowait()) for _ in range(seen.qsize()))
    assert received == list(range(251))


def test_waiting_for_acknowledgements_says_how_many_are_missing(
    subscriber: tuple[LocalPubSub, RawClient, Any],
) -> None:
    """Users see how far a subscriber came when it does not finish."""
    server, client, official = subscriber
    ids(client.publish(b"a", b"b", b"c"))
    (first,) = pulled(official, 1)
    official.acknowledge(subscription=NAME, ack_ids=[first.ack_id])
    with pytest.raises(TimeoutError, match=f"2 messages of {NAME} are not acknowledged"):
        server.wait_until_acknowledged(NAME, timeout=0)


def test_streaming_redelivers_what_is_refused(subscriber: tuple[LocalPubSub, RawClient, Any]) -> None:
    """Users see a refused message again on the same stream."""
    _, client, official = subscriber
    seen: queue.Queue[str] = queue.Queue()
    refused: set[str] = set()

    def receive(message: Any) -> None:
        if message.message_id in refused:
            message.ack()
        else:
            refused.add(message.message_id)
            message.nack()
        seen.put(message.message_id)

    streaming = official.subscribe(NAME, receive)
    (given,) = ids(client.publish(b"a"))
    assert [seen.get(timeout=20), seen.get(timeout=20)] == [given, given]
    streaming.cancel()
    streaming.result(timeout=20)


def test_deleting_a_subscription_ends_its_streams(subscriber: tuple[LocalPubSub, RawClient, Any]) -> None:
    """Users of a deleted subscription are told so instead of waiting for ever."""
    server, client, official = subscriber
    started = threading.Event()

    def receive(message: Any) -> None:
        message.ack()
        started.set()

    streaming = official.subscribe(NAME, receive)
    ids(client.publish(b"a"))
    assert started.wait(20)
    official.delete_subscription(subscription=NAME)
    with pytest.raises(exceptions.NotFound):
        streaming.result(timeout=20)
    with pytest.raises(exceptions.NotFound):
        pulled(official)
    assert list(official.list_subscriptions(project="projects/p-test")) == []
    assert server.messages(TOPIC)[0].data == b"a"


def test_subscriptions_can_be_made_found_and_listed(serve: Serve) -> None:
    """Users can administer subscriptions with the official client."""
    server, _ = serve()
    with (
        server.environment(),
        SubscriberClient() as official,
        PublisherClient() as publisher,
    ):
        made = official.create_subscription(name=NAME, topic=TOPIC, ack_deadline_seconds=20)
        assert (made.name, made.topic, made.ack_deadline_seconds) == (NAME, TOPIC, 20)
        assert official.get_subscription(subscription=NAME) == made
        assert list(official.list_subscriptions(project="projects/p-test")) == [made]
        assert list(publisher.list_topic_subscriptions(topic=TOPIC)) == [NAME]
        with pytest.raises(exceptions.AlreadyExists):
            official.create_subscription(name=NAME, topic=TOPIC)
        publisher.delete_topic(topic=TOPIC)
        assert official.get_subscription(subscription=NAME).topic == "_deleted-topic_"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"name": "s", "topic": TOPIC}, exceptions.InvalidArgument),
        ({"name": NAME, "topic": TOPIC + "-unknown"}, exceptions.NotFound),
        ({"name": NAME, "topic": TOPIC, "ack_deadline_seconds": 9}, exceptions.InvalidArgument),
        ({"name": NAME, "topic": TOPIC, "ack_deadline_seconds": 601}, exceptions.InvalidArgument),
        ({"name": NAME, "topic": TOPIC, "filter": "attributes:k"}, exceptions.MethodNotImplemented),
        ({"name": NAME, "topic": TOPIC, "enable_exactly_once_delivery": True}, exceptions.MethodNotImplemented),
        (
            {"name": NAME, "topic": TOPIC, "push_config": {"push_endpoint": "https://e"}},
            exceptions.MethodNotImplemented,
        ),
    ],
)
def test_wrong_and_unsupported_subscriptions_are_refused(
    serve: Serve, fields: dict[str, Any], error: type[Exception]
) -> None:
    """Users are never given a subscription that behaves otherwise than they asked."""
    server, _ = serve()
    with server.environment(), SubscriberClient() as official, pytest.raises(error):
        official.create_subscription(request=fields, retry=None)


def stream(client: Any, **first: Any) -> None:
    """Opens a stream with the given first request, and waits for what it brings."""
    request = {"subscription": NAME, "stream_ack_deadline_seconds": 10, **first}
    next(iter(client.streaming_pull(requests=iter([types.StreamingPullRequest(**request)]), timeout=20)))


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.pull(subscription=NAME, max_messages=0),
        lambda client: client.modify_ack_deadline(subscription=NAME, ack_ids=["1-1"], ack_deadline_seconds=601),
        lambda client: client.acknowledge(subscription=NAME, ack_ids=[]),
        lambda client: client.list_subscriptions(request={"project": "projects/p-test", "page_size": -1}),
        lambda client: client.list_subscriptions(request={"project": "projects/p-test", "page_token": "x"}),
        lambda client: stream(client, stream_ack_deadline_seconds=9),
        lambda client: stream(client, modify_deadline_ack_ids=["1-1"], modify_deadline_seconds=[]),
    ],
)
def test_malformed_calls_are_refused(
    subscriber: tuple[LocalPubSub, RawClient, Any], call: Callable[[Any], object]
) -> None:
    """Users see the errors that the real service gives to malformed calls."""
    with pytest.raises(exceptions.InvalidArgument):
        call(subscriber[2])


def test_other_methods_are_not_implemented(subscriber: tuple[LocalPubSub, RawClient, Any]) -> None:
    """Users are told clearly what this server cannot do."""
    with pytest.raises(exceptions.MethodNotImplemented):
        subscriber[2].list_snapshots(project="projects/p-test")
