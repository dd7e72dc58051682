"""C05. A bundle at the edge of a batch's limits sent a request without messages, or split where it need not.

The service refuses an empty request, so the user's bundle failed for a batch that held nothing.
"""

from __future__ import annotations

from collections import Counter

import pytest
from google.cloud.pubsub_v1.types import BatchSettings

from tests.beam.pipelines import make_fn, run_bundle
from tests.server.serving import TOPIC, UNHURRIED, serving


def limits(max_messages: int = 1000, max_bytes: int = 1_000_000) -> BatchSettings:
    """Makes batches that never end by age."""
    return BatchSettings(max_messages=max_messages, max_bytes=max_bytes, max_latency=600)


@pytest.mark.parametrize(
    ("elements", "batch_settings", "sizes"),
    [
        ([], limits(), []),
        ([b"x"] * 100, limits(max_messages=100), [100]),
        ([b"x"] * 101, limits(max_messages=100), [100, 1]),
        ([b"x" * 1200], limits(max_bytes=1000), [1]),
        ([b"x" * 1200, b"y"], limits(max_bytes=1000), [1, 1]),
        ([b"y", b"x" * 1200, b"y"], limits(max_bytes=1000), [1, 1, 1]),
        ([b"x"] * 1001, limits(max_messages=1000), [1000, 1]),
        ([b"x"] * 3, limits(max_messages=1), [1, 1, 1]),
    ],
    ids=["empty", "100", "101", "large", "large first", "large between", "1001", "singles"],
)
def test_no_request_is_empty_and_none_is_split_without_need(
    elements: list[bytes], batch_settings: BatchSettings, sizes: list[int]
) -> None:
    """A bundle becomes as few requests as its limits allow, each with messages."""
    with serving() as server:
        write_fn = make_fn(UNHURRIED, batch_settings=batch_settings)
        write_fn.setup()
        run_bundle(write_fn, elements)
        write_fn.teardown()
        assert Counter(len(record.messages) for record in server.requests) == Counter(sizes)
        assert Counter(message.data for message in server.messages(TOPIC)) == Counter(elements)
