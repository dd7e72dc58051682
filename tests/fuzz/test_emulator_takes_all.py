"""What is accepted here is accepted by Google's emulator, too, and arrives as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beam_hedge import HedgingPublisher
from tests.fuzz.messages import MOST_MESSAGES, is_allowed, plausible
from tests.server.serving import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.emulator.emulator import Emulator


def _content(message: Any) -> tuple[bytes, dict[str, str]]:
    """Returns the data and the attributes that a subscriber should see."""
    body = message.data if hasattr(message, "attributes") else message
    given_attributes = dict(message.attributes or {}) if hasattr(message, "attributes") else {}
    return (body.encode() if isinstance(body, str) else body or b""), given_attributes


@pytest.fixture
def publish(emulator_host: Emulator) -> Iterator[Any]:
    """Return what publishes a batch, and returns what a subscriber got, in the order of the batch."""
    topic = emulator_host.create_topic()
    subscription = emulator_host.create_subscription(topic)

    def publish_and_pull(messages: list[Any]) -> list[tuple[bytes, dict[str, str]]]:
        ids = publisher.publish(messages).result(PATIENCE).message_ids
        pulled = {message.message_id: message for message in emulator_host.pull_all(subscription, len(ids))}
        return [(bytes(pulled[each].data), dict(pulled[each].attributes)) for each in ids]

    with HedgingPublisher(topic, None) as publisher:
        yield publish_and_pull


# All examples publish to one topic, each after the other has been pulled.
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(messages=st.lists(plausible.filter(is_allowed), min_size=1, max_size=20))
def test_accepted_messages_of_any_content_arrive(publish: Any, messages: list[Any]) -> None:
    """No message that passes the checks is refused by the service or changed on its way."""
    assert publish(messages) == [_content(message) for message in messages]


@pytest.mark.parametrize("count", [1, MOST_MESSAGES - 1, MOST_MESSAGES])
def test_accepted_batches_of_any_length_arrive(publish: Any, count: int) -> None:
    """The largest batch that passes the checks passes the service's, too."""
    messages = [b"%d" % number for number in range(count)]
    assert publish(messages) == [(message, {}) for message in messages]
