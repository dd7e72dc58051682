"""C22. A message larger than a batch may be was refused, though the service takes it; or it went out twice.

The batch's limit was taken for the message's, or a dozen of them filled the memory of a worker.
"""

from __future__ import annotations

import apache_beam as beam
import pytest

from beam_hedge import WriteToPubSubHedged
from tests.beam.collecting import create, finish, make_pipeline
from tests.server.serving import TOPIC, UNHURRIED, serving


@pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
def test_a_message_larger_than_a_batch_goes_alone(runner: str) -> None:
    """With the default batch settings, one message of 9,999,900 bytes between small ones is published once."""
    data = b"x" * 9_999_900
    with serving() as server:
        pipeline = make_pipeline(runner)
        _ = create(pipeline, [b"before", data, b"after"]) | WriteToPubSubHedged(TOPIC, UNHURRIED)
        finish(pipeline)
        stored = [message.data for message in server.messages(TOPIC)]
        requests = server.requests
    assert sorted(stored, key=len) == [b"after", b"before", data]
    assert [len(each.messages) for each in requests if each.size > 9_000_000] == [1]


def test_twelve_of_them_are_published_once_each() -> None:
    """More than flow control lets out at once: the bundle waits and goes on, and each arrives once."""
    with serving() as server:
        pipeline = make_pipeline()
        # Made on the way: Beam would compress what the pipeline itself holds.
        large = create(pipeline, range(12)) | beam.Map(lambda number: b"%02d" % number * 4_950_000)
        _ = large | WriteToPubSubHedged(TOPIC, UNHURRIED)
        finish(pipeline)
        assert server.ledger().requests == server.ledger().answered == 12
        stored = sorted((message.data[:2], len(message.data)) for message in server.messages(TOPIC))
    assert stored == [(b"%02d" % number, 9_900_000) for number in range(12)]
