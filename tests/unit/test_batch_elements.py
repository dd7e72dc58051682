"""Batches and the elements that they were made of, which a dead letter or an outcome needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from google.cloud.pubsub_v1.types import BatchSettings
from google.pubsub_v1.types import PublishRequest

from beam_hedge.batch import BatchBuilder, seal, seal_fields
from beam_hedge.errors import InvalidMessageError
from beam_hedge.message import encode, encode_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beam_hedge.batch import Batch

TOPIC = "projects/p-test/topics/out"


class _Emitted:
    """A builder, and each batch's data beside its elements."""

    def __init__(self, max_messages: int = 1000, max_bytes: int = 10_000_000) -> None:
        self.batches: list[tuple[list[bytes], list[object]]] = []
        settings = BatchSettings(max_messages=max_messages, max_bytes=max_bytes, max_latency=86_400)
        self.builder = BatchBuilder(TOPIC, settings, self._emit)

    def _emit(self, batch: Batch, elements: Sequence[object]) -> None:
        request = PublishRequest.pb().FromString(batch.request)
        self.batches.append(([message.data for message in request.messages], list(elements)))


def test_each_batch_comes_with_the_elements_of_its_own_messages() -> None:
    """A refused batch is taken apart into the elements that were in it, and no others."""
    emitted = _Emitted(max_messages=2)
    for name in ("a", "b", "c"):
        emitted.builder.add(encode_data(name), name)
    emitted.builder.flush()
    assert emitted.batches == [([b"a", b"b"], ["a", "b"]), ([b"c"], ["c"])]


def test_a_message_that_no_request_can_carry_leaves_no_element_behind() -> None:
    """The element of a message that was refused is not blamed on, or published with, the next batch."""
    emitted = _Emitted()
    emitted.builder.add(encode_data("before"), "before")
    with pytest.raises(InvalidMessageError):
        emitted.builder.add(encode_data(b"x" * 9_999_963), "too large")
    emitted.builder.add(encode_data("after"), "after")
    emitted.builder.flush()
    assert [elements for _, elements in emitted.batches] == [["before"], ["after"]]


def test_a_batch_that_goes_out_because_of_a_large_message_keeps_its_own_elements() -> None:
    """A message that does not fit any more takes its element along to the next batch."""
    emitted = _Emitted(max_bytes=100)
    emitted.builder.add(encode_data("small"), "small")
    emitted.builder.add(encode_data("x" * 80), "large")
    emitted.builder.flush()
    assert [elements for _, elements in emitted.batches] == [["small"], ["large"]]


def test_the_elements_of_a_batch_are_not_touched_by_later_ones() -> None:
    """A batch that is out keeps its list of elements while its builder goes on."""
    kept: list[Sequence[object]] = []
    builder = BatchBuilder(TOPIC, BatchSettings(max_messages=1), lambda _batch, elements: kept.append(elements))
    builder.add(encode_data("a"), "a")
    builder.add(encode_data("b"), "b")
    assert kept == [["a"], ["b"]]


def test_without_elements_a_batch_has_none() -> None:
    """A sink that needs no elements keeps none in memory."""
    emitted = _Emitted()
    emitted.builder.add(encode_data("a"))
    emitted.builder.flush()
    assert emitted.batches == [([b"a"], [])]


def test_a_part_of_a_batch_is_sealed_like_a_batch() -> None:
    """Messages that are sent again in a smaller batch are the same bytes as before."""
    fields = [encode("a"), encode(b"b")]
    assert seal_fields(TOPIC, fields).request == seal(TOPIC, ["a", b"b"]).request
    assert seal_fields(TOPIC, fields[1:]).messages == 1
