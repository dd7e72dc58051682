"""Google's Pub/Sub emulator: start it, and look at what arrived in it."""

from __future__ import annotations

import socket
import tempfile
import time
from contextlib import contextmanager
from itertools import count as counting
from typing import TYPE_CHECKING, cast

import grpc
from google.pubsub_v1 import PublisherClient, SubscriberClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport
from google.pubsub_v1.types import PullRequest, PullResponse

from tests.emulator.process import child_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from subprocess import Popen
    from typing import IO

    from google.pubsub_v1.types import PubsubMessage

_START_SECONDS = 60
_PULL_SECONDS = 60


class EmulatorError(Exception):
    """The emulator did not start, or does not hold what a test expects."""


class Emulator:
    """A running emulator.

    Attributes:
        endpoint: Its host and port, as `PUBSUB_EMULATOR_HOST` wants them.
        project: The project that topics and subscriptions are made in.
    """

    def __init__(self, endpoint: str, channel: grpc.Channel) -> None:
        self.endpoint = endpoint
        self.project = "p-test"
        self._numbers = counting(1)
        # The clients' own emulator channels refuse answers over 4 MiB, and a pull of large messages is one.
        self._publisher = PublisherClient(transport=PublisherGrpcTransport(channel=channel))
        self._subscriber = SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))
        # The client's own `pull` warns that not waiting is deprecated. There is no other way to learn that a
        # subscription is empty.
        self._pull = channel.unary_unary(
            "/google.pubsub.v1.Subscriber/Pull", PullRequest.serialize, PullResponse.deserialize
        )

    def __repr__(self) -> str:
        return f"Emulator({self.endpoint!r})"

    def create_topic(self, topic_id: str | None = None) -> str:
        """Create a topic, by default one that no other test has, and return its full name."""
        topic = f"projects/{self.project}/topics/{topic_id or f't-{next(self._numbers)}'}"
        self._publisher.create_topic(name=topic)
        return topic

    def create_subscription(self, topic: str, subscription_id: str | None = None) -> str:
        """Create a subscription to a topic and return its full name. It sees what is published from now on."""
        subscription = f"projects/{self.project}/subscriptions/{subscription_id or f's-{next(self._numbers)}'}"
        self._subscriber.create_subscription(name=subscription, topic=topic)
        return subscription

    def pull_all(self, subscription: str, count: int) -> list[PubsubMessage]:
        """Pull and acknowledge everything that a subscription holds.

        Args:
            subscription: The subscription's full name.
            count: How many messages are expected at least. More come back if there are duplicates.

        Returns:
            The messages.

        Raises:
            EmulatorError: Fewer than `count` arrived within a minute.
        """
        messages: list[PubsubMessage] = []
        deadline = time.monotonic() + _PULL_SECONDS
        while True:
            request = PullRequest(subscription=subscription, max_messages=1000, return_immediately=True)
            received = self._pull(request, timeout=_PULL_SECONDS).received_messages
            if received:
                messages += [one.message for one in received]
                ack_ids = [one.ack_id for one in received]
                self._subscriber.acknowledge(subscription=subscription, ack_ids=ack_ids)
            elif len(messages) >= count:
                return messages
            elif time.monotonic() > deadline:
                raise EmulatorError(f"{subscription}: {len(messages)} messages instead of {count}")


@contextmanager
def running_emulator(java: str, jar: Path) -> Iterator[Emulator]:
    """Run the emulator on a free port of this machine for the length of a `with` block.

    Args:
        java: The Java runtime.
        jar: The emulator.

    Yields:
        The emulator, ready for calls.

    Raises:
        EmulatorError: It ended at once or did not answer within a minute; what it printed is in the message.
    """
    endpoint = f"127.0.0.1:{_free_port()}"
    host, port = endpoint.split(":")
    command = [java, "-jar", str(jar), f"--host={host}", f"--port={port}"]
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with (
        tempfile.TemporaryFile() as output,
        child_process(command, output) as process,
        grpc.insecure_channel(endpoint, options=unlimited) as channel,
    ):
        _wait_until_ready(process, channel, output)
        yield Emulator(endpoint, channel)


def _free_port() -> int:
    # The emulator itself cannot say which port it took when it is given port 0.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return cast("int", probe.getsockname()[1])


def _wait_until_ready(process: Popen[bytes], channel: grpc.Channel, output: IO[bytes]) -> None:
    ready = grpc.channel_ready_future(channel)
    deadline = time.monotonic() + _START_SECONDS
    while not _is_done_within_a_second(ready):
        if process.poll() is not None or time.monotonic() > deadline:
            break
    else:
        return
    ready.cancel()
    output.seek(0)
    printed = output.read().decode(errors="replace")
    state = "is running" if process.poll() is None else f"ended with status {process.returncode}"
    raise EmulatorError(f"the Pub/Sub emulator {state} and does not answer; it printed:\n{printed}")


def _is_done_within_a_second(ready: grpc.Future[None]) -> bool:
    try:
        ready.result(timeout=1)
    except grpc.FutureTimeoutError:
        return False
    return True
