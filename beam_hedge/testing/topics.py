"""The topics and subscriptions of the embedded Pub/Sub, and what is stored in them."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import grpc

from beam_hedge.testing.limits import check_name
from beam_hedge.testing.messages import StoredRequest
from beam_hedge.testing.refusal import RefusedError, already_exists, not_found
from beam_hedge.testing.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.testing.messages import StoredMessage


DELETED_TOPIC = "_deleted-topic_"


class Topics:
    """All topics and subscriptions of one server.

    Owned by the server. One reentrant lock guards all of it, subscriptions included; it is held while
    messages are added or handed out, never while anybody waits.

    Args:
        auto_create: Whether publishing or subscribing to an unknown topic makes it.
        keep_messages: Whether messages are kept. Without them a server can take any load, but has no
            subscriptions.
        clock: What tells the time for ack deadlines, in seconds.
    """

    def __init__(
        self,
        *,
        auto_create: bool = False,
        keep_messages: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._auto_create = auto_create
        self.keep_messages = keep_messages
        self._clock = clock
        self._lock = threading.RLock()
        self._logs: dict[str, list[StoredRequest]] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._next_id = 1

    def create(self, name: str) -> None:
        """Makes a topic."""
        check_name("topics", name)
        with self._lock:
            if name in self._logs:
                raise already_exists("topic", name)
            self._logs[name] = []

    def check(self, name: str) -> None:
        """Makes sure that a topic is there, and makes it if the server is set to."""
        with self._lock:
            if name in self._logs:
                return
            check_name("topics", name)
            if not self._auto_create:
                raise not_found("topic", name)
            self._logs[name] = []

    def get(self, name: str) -> str:
        """Returns the name of a topic that is there."""
        check_name("topics", name)
        with self._lock:
            if name not in self._logs:
                raise not_found("topic", name)
            return name

    def delete(self, name: str) -> None:
        """Deletes a topic with its messages; its subscriptions stay, with what they have not delivered yet."""
        with self._lock:
            del self._logs[self.get(name)]
            for subscription in self.subscriptions_of(name):
                subscription.topic_name = DELETED_TOPIC

    def names(self, project: str = "") -> list[str]:
        """Returns the names of the topics of a project such as "projects/p", or of all, in order."""
        with self._lock:
            return sorted(name for name in self._logs if not project or name.startswith(f"{project}/"))

    def new_ids(self, count: int) -> int:
        """Returns the first of `count` message ids that follow each other and were never used."""
        with self._lock:
            first = self._next_id
            self._next_id += count
            return first

    def store(self, name: str, raw: bytes, count: int, number: int) -> int:
        """Stores the messages of a publish call.

        Args:
            name: The topic.
            raw: The encoded request.
            count: How many messages it holds.
            number: The number of the call.

        Returns:
            The id of the first message; the others follow it one by one.

        Raises:
            RefusedError: NOT_FOUND if the topic was deleted meanwhile.
        """
        with self._lock:
            log = self._logs.get(name)
            if log is None:
                raise not_found("topic", name)
            first = self.new_ids(count)
            if self.keep_messages:
                log.append(StoredRequest(number, raw, count, first, time.time_ns()))
                for subscription in self.subscriptions_of(name):
                    subscription.wake()
            return first

    def messages(self, name: str) -> list[StoredMessage]:
        """Returns the messages of a topic in the order in which they were stored."""
        with self._lock:
            log = list(self._logs[self.get(name)])
        return [message for request in log for message in request.to_messages()]

    def subscribe(
        self, name: str, topic: str, *, ack_deadline: float = 10, ordered: bool = False
    ) -> Subscription:
        """Makes a subscription."""
        check_name("subscriptions", name)
        if not self.keep_messages:
            raise RefusedError(
                grpc.StatusCode.FAILED_PRECONDITION,
                "this server keeps no messages, so it has no subscriptions",
            )
        with self._lock:
            if name in self._subscriptions:
                raise already_exists("subscription", name)
            self.check(topic)
            subscription = self._subscriptions[name] = Subscription(
                name,
                topic,
                self._logs[topic],
                threading.Condition(self._lock),
                self._clock,
                ack_deadline=ack_deadline,
                ordered=ordered,
            )
            return subscription

    def subscription(self, name: str) -> Subscription:
        """Returns a subscription."""
        check_name("subscriptions", name)
        with self._lock:
            if name not in self._subscriptions:
                raise not_found("subscription", name)
            return self._subscriptions[name]

    def unsubscribe(self, name: str) -> None:
        """Deletes a subscription."""
        with self._lock:
            self.subscription(name).delete()
            del self._subscriptions[name]

    def subscriptions_of(self, topic: str = "", project: str = "") -> list[Subscription]:
        """Returns the subscriptions to a topic, or of a project, or all, ordered by name."""
        with self._lock:
            return [
                subscription
                for name, subscription in sorted(self._subscriptions.items())
                if (not topic or subscription.topic_name == topic)
                and (not project or name.startswith(f"{project}/"))
            ]
