"""What a server lets tests do with topics, subscriptions and the messages in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from beam_hedge.testing.messages import StoredMessage
    from beam_hedge.testing.topics import Topics


class TopicControls:
    """The methods of `LocalPubSub` for topics and subscriptions; they work before it starts and after it stops.

    They raise `RefusedError`, with the status that a client would get, for names that are malformed, taken or
    unknown.
    """

    _topics: Topics

    def create_topic(self, name: str) -> None:
        """Makes a topic, given its full name."""
        self._topics.create(name)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic with its messages."""
        self._topics.delete(name)

    def messages(self, topic: str) -> list[StoredMessage]:
        """Returns all messages of a topic, in the order of storing."""
        return self._topics.messages(topic)

    def duplicates(self, topic: str, key: Callable[[StoredMessage], Hashable] | None = None) -> int:
        """Returns how many messages of a topic are copies of earlier ones.

        Args:
            topic: The full name of the topic.
            key: What makes two messages the same; default: equal data and attributes.
        """
        messages = self._topics.messages(topic)
        return len(messages) - len({message.content if key is None else key(message) for message in messages})

    def create_subscription(
        self, name: str, topic: str, *, ack_deadline: float = 10, ordered: bool = False
    ) -> None:
        """Makes a subscription, which gets what is published from now on.

        Args:
            name: Its full name.
            topic: The full name of its topic.
            ack_deadline: Seconds that a subscriber has to acknowledge a message, 10 (default) to 600.
            ordered: Whether messages with one ordering key stay in order; default False.
        """
        self._topics.subscribe(name, topic, ack_deadline=ack_deadline, ordered=ordered)

    def subscriptions(self, topic: str) -> list[str]:
        """Returns the full names of the subscriptions to a topic, in order."""
        return [each.name for each in self._topics.subscriptions_of(topic)]

    def unacknowledged(self, subscription: str) -> int:
        """Returns how many messages of a subscription are not acknowledged yet, delivered or not."""
        return self._topics.subscription(subscription).unacknowledged

    def wait_until_acknowledged(self, subscription: str, *, timeout: float = 10.0) -> None:
        """Waits until all messages of a subscription are acknowledged.

        Args:
            subscription: Its full name.
            timeout: How long to wait, in seconds; default 10.

        Raises:
            TimeoutError: If some are not after that; the text says how many.
        """
        self._topics.subscription(subscription).wait_until_acknowledged(timeout)
