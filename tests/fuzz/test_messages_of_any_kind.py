"""A message, or a batch, of any kind is within Pub/Sub's limits and sent, or refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage
from google.pubsub_v1.types import PublishRequest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge import InvalidMessageError, InvalidSettingError
from beam_hedge.batch import seal
from beam_hedge.topics import parse_topic
from tests.fuzz.anything import any_text, anything
from tests.fuzz.attempt import attempt
from tests.fuzz.messages import MOST_MESSAGES, MOST_REQUEST_BYTES, is_allowed, odd, plausible
from tests.server.serving import TOPIC

_REQUEST: Any = PublishRequest.pb()


@given(messages=st.lists(st.one_of(plausible, odd), max_size=4))
def test_a_batch_of_anything_is_sealed_or_refused_with_a_reason(messages: list[Any]) -> None:
    """One element of a kind that nobody thought of fails as what it is, and not as a crash of the sink."""
    allowed = bool(messages) and all(is_allowed(message) for message in messages)
    batch, error = attempt(InvalidMessageError, seal, TOPIC, messages)
    assert allowed == (error is None)
    if error is not None:
        assert str(error)
    else:
        request = _REQUEST.FromString(batch.request)
        assert (request.topic, len(request.messages)) == (TOPIC, len(messages))


@given(sizes=st.lists(st.integers(1, 3_400_000), min_size=1, max_size=4), count=st.integers(0, 1_002))
def test_a_batch_of_any_size_is_within_the_limits_or_refused(sizes: list[int], count: int) -> None:
    """What the service would refuse for its size does not reach it, and nothing else is kept from it."""
    messages = [b"x" * size for size in sizes] + [b"y"] * (count - len(sizes))
    expected = _REQUEST(topic=TOPIC)
    for message in messages:
        expected.messages.add(data=message)
    allowed = len(messages) <= MOST_MESSAGES and expected.ByteSize() <= MOST_REQUEST_BYTES
    batch, error = attempt(InvalidMessageError, seal, TOPIC, messages)
    assert allowed == (error is None)
    if error is not None:
        assert str(MOST_MESSAGES) in str(error) or str(MOST_REQUEST_BYTES) in str(error)
    else:
        assert len(batch.request) == expected.ByteSize()


@given(topic=st.one_of(anything, any_text, any_text.map(lambda text: f"projects/p-test/topics/{text}")))
def test_a_topic_of_any_kind_is_a_full_name_or_refused(topic: Any) -> None:
    """A topic that cannot be one is told before anything is sent, whatever it is."""
    parsed, error = attempt(InvalidSettingError, parse_topic, topic)
    if error is not None:
        assert error.field == "topic"
    else:
        project, topic_id = parsed
        assert topic == f"projects/{project}/topics/{topic_id}"
        assert topic.isascii()
        assert not topic_id.startswith("goog")


@pytest.mark.parametrize(
    "messages", [None, 5, object(), PubsubMessage(b"x", {})], ids=lambda value: type(value).__name__
)
def test_what_holds_no_messages_is_refused_with_a_reason(messages: Any) -> None:
    """A caller who passes something else than a list is told so."""
    with pytest.raises(InvalidMessageError, match="messages"):
        seal(TOPIC, messages)
