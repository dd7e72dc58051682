"""C08. A request over gRPC's size limit has the status of a spent quota, and was tried again for ten minutes.

It can never succeed, while a quota comes back: one has to fail at once, the other to be waited for.
"""

from __future__ import annotations

import itertools

import grpc
import pytest

from beam_hedge import HedgingPublisher, HedgingSettings, PublishError, RetrySettings, WriteToPubSubHedged
from beam_hedge.testing import Reply
from tests.beam.pipelines import RUNNERS, counters, run_pipeline
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, by_number, serving

GRPC_LIMIT = 4 * 1024 * 1024
# Makes a request of one byte more than the limit.
DATA = b"x" * 4_194_267
# Nothing is hedged that ends within these 2 s.
SETTINGS = HedgingSettings(hedge_delay=2, initial_tokens=20)
QUOTA = Reply(status=grpc.StatusCode.RESOURCE_EXHAUSTED, details="Quota exceeded for quota metric 'Regional'")


def test_the_size_error_fails_at_once_and_says_the_size() -> None:
    """A request that the service can never take is sent once, and the error names its size and the limit."""
    with (
        serving(max_receive_bytes=GRPC_LIMIT) as server,
        HedgingPublisher(TOPIC, SETTINGS) as publisher,
    ):
        error = publisher.publish([DATA]).exception(PATIENCE)
        # One byte less passes, so it is this limit that is tested.
        publisher.publish([DATA[1:]]).result(PATIENCE)
        assert [request.size for request in server.requests] == [GRPC_LIMIT]
    assert isinstance(error, PublishError)
    assert error.status is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (error.attempts, error.retries, error.hedges) == (1, 0, 0)
    assert error.request_bytes == GRPC_LIMIT + 1
    assert f"{GRPC_LIMIT + 1} B" in str(error)
    assert f"vs. {GRPC_LIMIT}" in str(error)
    assert "batch_settings.max_bytes" in str(error)


@pytest.mark.parametrize("dead_letter", [False, True])
def test_the_size_error_fails_the_pipeline(dead_letter: bool) -> None:
    """The user learns what to change instead of watching a pipeline that stands still."""
    transform = WriteToPubSubHedged(TOPIC, SETTINGS, dead_letter=dead_letter)
    with (
        serving(max_receive_bytes=GRPC_LIMIT) as server,
        pytest.raises(Exception, match=f"{GRPC_LIMIT + 1} B.* after 1 attempt"),
    ):
        run_pipeline([DATA], transform)
    assert server.ledger().messages == 0


def test_a_spent_quota_is_waited_for() -> None:
    """The same status for quota is tried again, after waits that grow as the settings say."""
    retry = RetrySettings(initial_retry_delay=0.2, retry_delay_multiplier=4)
    with (
        serving(by_number(QUOTA, QUOTA)) as server,
        HedgingPublisher(TOPIC, UNHURRIED, retry_settings=retry) as publisher,
    ):
        outcome = publisher.publish([b"x"]).result(PATIENCE)
        tries = server.requests
    assert (outcome.attempts, outcome.retries, outcome.hedges) == (3, 2, 0)
    assert outcome.message_ids == tries[-1].message_ids
    waits = [
        after.arrival - before.ended for before, after in itertools.pairwise(tries) if before.ended is not None
    ]
    # The way to the server and back takes time as well, more on a busy machine.
    slack = 1.0
    assert [0.1 <= waits[0] <= 0.2 + slack, 0.4 <= waits[1] <= 0.8 + slack] == [True, True], waits


@pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
def test_a_spent_quota_does_not_fail_the_pipeline(runner: str) -> None:
    """The bundle is published in its first try, and the counters tell of the retries."""
    retry = RetrySettings(initial_retry_delay=0.01)
    with serving(by_number(QUOTA, QUOTA)) as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, retry_settings=retry)
        found = counters(run_pipeline([b"x"], transform, RUNNERS[runner]))
        assert server.ledger().requests == 3
    assert (found["retries"], found["messages_published"], found["batches_failed"]) == (2, 1, 0)
