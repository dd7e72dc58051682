"""Batches: a bundle's messages, grouped by count, request bytes and age."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage
from google.cloud.pubsub_v1.types import BatchSettings
from google.pubsub_v1.types import PublishRequest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.batch import BatchBuilder, seal
from beam_hedge.errors import InvalidMessageError
from beam_hedge.message import encode_data
from beam_hedge.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beam_hedge.batch import Batch

TOPIC = "projects/p-test/topics/out"


class _Builder:
    """A builder in virtual time that keeps what it emits."""

    def __init__(
        self,
        max_messages: int = 1000,
        max_bytes: int = 10_000_000,
        max_latency: float = 86_400,
        start: float = 0.0,
    ) -> None:
        self.clock = FakeClock(start)
        self.batches: list[Batch] = []
        self.elements: list[list[object]] = []
        settings = BatchSettings(max_messages=max_messages, max_bytes=max_bytes, max_latency=max_latency)
        self.builder = BatchBuilder(TOPIC, settings, self._emit, self.clock.time)

    def add(self, *sizes: int) -> None:
        """Adds messages with so many bytes of data."""
        for size in sizes:
            self.builder.add(encode_data(b"x" * size))

    def _emit(self, batch: Batch, elements: Sequence[object]) -> None:
        self.batches.append(batch)
        self.elements.append(list(elements))

    @property
    def counts(self) -> list[int]:
        """Messages of each batch so far."""
        return [batch.messages for batch in self.batches]


def test_an_empty_bundle_sends_nothing() -> None:
    """No request without messages is ever made."""
    builder = _Builder()
    builder.builder.flush()
    assert builder.counts == []


@pytest.mark.parametrize(
    ("elements", "max_messages", "counts"),
    [(100, 100, [100]), (99, 100, [99]), (101, 100, [100, 1]), (1001, 1000, [1000, 1]), (3, 1, [1, 1, 1])],
)
def test_a_batch_is_full_at_its_most_messages(elements: int, max_messages: int, counts: list[int]) -> None:
    """A batch goes out when it has max_messages, and a full one leaves no empty one behind."""
    builder = _Builder(max_messages)
    builder.add(*[1] * elements)
    full = [count for count in counts if count == max_messages]
    assert builder.counts == full
    builder.builder.flush()
    assert builder.counts == counts


def test_a_first_message_over_max_bytes_goes_alone() -> None:
    """A large message is sent, and alone."""
    builder = _Builder(max_bytes=1000)
    builder.add(1200)
    assert builder.counts == [1]
    builder.add(10, 1200, 10)
    builder.builder.flush()
    assert builder.counts == [1, 1, 1, 1]


def test_the_size_of_a_batch_is_that_of_the_whole_request() -> None:
    """Five messages whose request would be 18 bytes over the limit make two requests."""
    builder = _Builder()
    builder.add(*[1_999_990] * 5)
    builder.builder.flush()
    assert builder.counts == [4, 1]
    assert max(len(batch.request) for batch in builder.batches) <= 10_000_000
    assert sum(len(batch.request) for batch in builder.batches) == 10_000_018 + 28


def test_the_largest_message_that_a_request_can_carry_is_accepted_and_one_byte_more_is_not() -> None:
    """The limit is the request's 10,000,000 bytes, to the byte, and nothing that was added before is lost."""
    builder = _Builder(max_bytes=1_000_000)
    builder.add(9_999_962)
    assert [len(batch.request) for batch in builder.batches] == [10_000_000]
    builder.add(7)
    with pytest.raises(InvalidMessageError, match="10000001 B"):
        builder.add(9_999_963)
    builder.builder.flush()
    assert builder.counts == [1, 1]


def test_a_batch_that_reaches_max_bytes_exactly_goes_out() -> None:
    """max_bytes is the most that a batch may have, and one that has it does not wait."""
    size = len(seal(TOPIC, [b"xxxxx"] * 3).request)
    exact, less = _Builder(max_bytes=size), _Builder(max_bytes=size - 1)
    for builder in (exact, less):
        builder.add(5, 5, 5)
    assert exact.counts == [3]
    assert less.counts == [2]


def test_a_batch_goes_out_with_the_first_message_that_comes_when_it_is_old() -> None:
    """Messages do not wait for others for ever while a bundle goes on."""
    builder = _Builder(max_latency=1.0)
    builder.add(1)
    builder.clock.advance(0.999)
    builder.add(1)
    assert builder.counts == []
    builder.clock.advance(0.001)
    builder.add(1)
    assert builder.counts == [2]


@pytest.mark.parametrize("start", [0.0, 0.5, 1000.0])
def test_the_age_of_a_batch_runs_from_its_own_first_message(start: float) -> None:
    """A batch is not cut short because the one before it was opened long ago."""
    builder = _Builder(max_messages=2, max_latency=1.0, start=start)
    builder.add(1)
    builder.clock.advance(0.6)
    builder.add(1)
    assert builder.counts == [2]
    builder.clock.advance(0.3)
    builder.add(1)
    builder.clock.advance(0.2)
    builder.add(1)
    assert builder.counts == [2, 2]


def test_the_age_of_the_first_batch_runs_from_its_first_message() -> None:
    """A builder that waited for its first message does not take that for age, whatever the clock's origin."""
    builder = _Builder(max_latency=1.0)
    builder.clock.advance(0.9)
    builder.add(1)
    builder.clock.advance(0.5)
    builder.add(1)
    assert builder.counts == []


@given(
    sizes=st.lists(st.integers(min_value=1, max_value=300), max_size=60),
    max_messages=st.integers(min_value=1, max_value=20),
    max_bytes=st.integers(min_value=1, max_value=1500),
)
def test_every_message_is_in_one_batch_in_order(sizes: list[int], max_messages: int, max_bytes: int) -> None:
    """Whatever the limits, nothing is lost, doubled or reordered, and only single messages exceed max_bytes."""
    builder = _Builder(max_messages, max_bytes)
    messages = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    for message in messages:
        builder.builder.add(encode_data(message))
    builder.builder.flush()
    sent = []
    for batch in builder.batches:
        request = PublishRequest.pb().FromString(batch.request)
        assert request.topic == batch.topic == TOPIC
        assert 1 <= len(request.messages) == batch.messages <= max_messages
        assert len(batch.request) <= max_bytes or batch.messages == 1
        sent += [message.data for message in request.messages]
    assert sent == messages


@pytest.mark.parametrize("count", [0, 1001])
def test_a_batch_of_no_or_too_many_messages_is_refused(count: int) -> None:
    """`publish()` takes 1 to 1,000 messages, as one request does."""
    with pytest.raises(InvalidMessageError, match=f"got {count}"):
        seal(TOPIC, [b"x"] * count)
    assert seal(TOPIC, [b"x"] * 1000).messages == 1000


def test_a_batch_over_the_request_limit_is_refused() -> None:
    """`publish()` tells the size of a request that Pub/Sub would refuse."""
    assert len(seal(TOPIC, [b"x" * 9_999_962]).request) == 10_000_000
    with pytest.raises(InvalidMessageError, match="1 messages make a request of 10000001 B"):
        seal(TOPIC, [b"x" * 9_999_963])


@pytest.mark.parametrize("message", [b"abc", "abc"])
def test_one_message_is_no_list_of_messages(message: bytes | str) -> None:
    """A forgotten pair of brackets does not publish each letter as a message."""
    with pytest.raises(InvalidMessageError, match="list of messages"):
        seal(TOPIC, message)  # type: ignore[arg-type]


@pytest.mark.parametrize("messages", [b"one", "one", PubsubMessage(b"one", {}), 1])
def test_one_message_instead_of_a_list_is_refused_by_its_type(messages: Any) -> None:
    """Who forgets the brackets is told so, and no text is taken for a list of letters."""
    with pytest.raises(InvalidMessageError, match=f"list of messages, got one {type(messages).__name__}$"):
        seal(TOPIC, messages)


def test_a_sealed_batch_tells_its_topic_and_its_limit() -> None:
    """Errors and outcomes name the topic, and a batch that is too large says what would fit."""
    assert seal(TOPIC, [b"x"]).topic == TOPIC
    with pytest.raises(InvalidMessageError, match=r"make a request of 1\d+ B; at most 10000000 B are allowed$"):
        seal(TOPIC, [b"x" * 6_000_000] * 2)
