"""A plain gRPC client for the tests of the embedded Pub/Sub."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.pubsub_v1 import types

from beam_hedge.testing import LocalPubSub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOPIC = "projects/p-test/topics/out"
_PublishRequest: Any = types.PublishRequest.pb()
_PubsubMessage: Any = types.PubsubMessage.pb()


class RawClient:
    """One connection of its own to a server, on which nothing is retried, batched or added.

    Args:
        server: The server.
    """

    def __init__(self, server: LocalPubSub) -> None:
        options = [
            # Without its own pool the channel would share a connection with the other clients of the process.
            ("grpc.use_local_subchannel_pool", 1),
            # After an outage it is back at once, and not after the usual second.
            ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.min_reconnect_backoff_ms", 50),
        ]
        self._channel = grpc.insecure_channel(server.endpoint, options=options)
        self._publish: Any = self._channel.unary_unary("/google.pubsub.v1.Publisher/Publish")

    def send(self, raw: bytes, **call_options: Any) -> Any:
        """Sends an encoded publish request, and returns the call, whose result is the list of message ids."""
        return self._publish.future(raw, **call_options)

    def publish(self, *data: bytes, topic: str = TOPIC, **call_options: Any) -> Any:
        """Sends a publish request with one message for each payload, and returns the call."""
        return self.send(request(*data, topic=topic), **call_options)

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()


def request(*data: bytes, topic: str = TOPIC, **fields: Any) -> bytes:
    """Returns an encoded publish request with one message for each payload, all with the same other fields."""
    messages = [_PubsubMessage(data=each, **fields) for each in data]
    encoded: bytes = _PublishRequest(topic=topic, messages=messages).SerializeToString()
    return encoded


def ids(call: Any) -> list[str]:
    """Returns the message ids that a call was answered."""
    return list(types.PublishResponse.pb().FromString(call.result(timeout=20)).message_ids)


@pytest.fixture
def serve() -> Iterator[Callable[..., tuple[LocalPubSub, RawClient]]]:
    """Starts servers with the topic `TOPIC` and a client each, and ends both after the test."""
    with ExitStack() as stack:

        def start(**settings: Any) -> tuple[LocalPubSub, RawClient]:
            server = stack.enter_context(LocalPubSub(**settings))
            server.create_topic(TOPIC)
            client = RawClient(server)
            stack.callback(client.close)
            return server, client

        yield start


@pytest.fixture
def connect() -> Iterator[Callable[[LocalPubSub], RawClient]]:
    """Makes further clients, and closes them after the test."""
    with ExitStack() as stack:

        def make(server: LocalPubSub) -> RawClient:
            client = RawClient(server)
            stack.callback(client.close)
            return client

        yield make
