"""C04. A batch's size was taken for the sum of its payloads, and the service refused the request.

A request is more than that; 18 bytes too many failed the bundle, and every try of it.
"""

from __future__ import annotations

import pytest
from google.cloud.pubsub_v1.types import BatchSettings

from beam_hedge import InvalidMessageError, WriteToPubSubHedged
from tests.beam.collecting import run_for_failed
from tests.beam.pipelines import make_fn, run_bundle
from tests.issues.inputs import fitting_data
from tests.server.serving import TOPIC, UNHURRIED, serving

LARGEST = BatchSettings(max_messages=1000, max_bytes=10_000_000, max_latency=600)


def test_five_messages_that_just_do_not_fit_together_go_in_two_requests() -> None:
    """The whole encoded request counts, so the service never sees one that is too large."""
    data = b"x" * 1_999_990
    with serving() as server:
        write_fn = make_fn(UNHURRIED, batch_settings=LARGEST)
        write_fn.setup()
        run_bundle(write_fn, [data] * 5)
        write_fn.teardown()
        assert sorted(len(request.messages) for request in server.requests) == [1, 4]
        assert server.ledger().answered == 2
    # What they would have been together.
    assert sum(request.size for request in server.requests) - (2 + len(TOPIC)) == 10_000_018


def test_the_largest_message_that_fits_is_published() -> None:
    """A request of exactly 10,000,000 bytes is not refused."""
    data = fitting_data(TOPIC)
    assert len(data) == 9_999_962
    with serving() as server:
        write_fn = make_fn(UNHURRIED, batch_settings=LARGEST)
        write_fn.setup()
        run_bundle(write_fn, [data])
        write_fn.teardown()
        assert [request.size for request in server.requests] == [10_000_000]
        assert server.ledger().answered == 1


def test_one_byte_more_is_rejected_before_sending() -> None:
    """The error names both sizes, and nothing was sent."""
    with serving() as server:
        write_fn = make_fn(UNHURRIED, batch_settings=LARGEST)
        write_fn.setup()
        write_fn.start_bundle()
        with pytest.raises(InvalidMessageError, match="10000001 B when sent alone; at most 10000000 B"):
            write_fn.process(fitting_data(TOPIC) + b"x")
        write_fn.teardown()
        assert server.ledger().requests == 0


def test_one_byte_more_is_a_dead_letter() -> None:
    """With dead letters on, the message that is too large comes out, and its neighbours are published."""
    too_large = fitting_data(TOPIC) + b"x"
    with serving() as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=LARGEST, dead_letter=True)
        _, failed = run_for_failed([b"before", too_large, b"after"], transform)
        assert sorted(message.data for message in server.messages(TOPIC)) == [b"after", b"before"]
        assert max(request.size for request in server.requests) < 1000
    [letter] = failed
    assert letter.element == too_large
    assert "10000001 B" in letter.reason
