"""Requests and responses that the benchmarks' server reads and writes without protobuf."""

from __future__ import annotations

from typing import Any

import pytest
from google.pubsub_v1.types import PublishResponse

from beam_hedge.batch import seal
from benchmarks.publish_messages import count_messages, response

_Response: Any = PublishResponse.pb()
_PREFIX = 5


@pytest.mark.parametrize("sizes", [[1], [1] * 1000, [100, 200, 20_000, 3_000_000], [118, 119, 120, 16_377]])
def test_messages_are_counted(sizes: list[int]) -> None:
    """A benchmark's count of messages is right, whatever their number and size."""
    request = seal("projects/p-test/topics/out", [b"x" * size for size in sizes]).request
    assert count_messages(b"\0" + len(request).to_bytes(4, "big") + request) == len(sizes)


@pytest.mark.parametrize("count", [1, 100, 1000])
def test_each_message_gets_an_id_of_its_own(count: int) -> None:
    """A publisher under measurement gets as many ids as it sent messages, and none twice."""
    answers = [response(number, count) for number in (0, 1, 99_999_999)]
    assert all(int.from_bytes(answer[1:_PREFIX], "big") == len(answer) - _PREFIX for answer in answers)
    ids = [one for answer in answers for one in _Response.FromString(answer[_PREFIX:]).message_ids]
    assert len(set(ids)) == 3 * count
