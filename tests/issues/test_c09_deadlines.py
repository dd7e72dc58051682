"""C09. A request that the service ignored was waited for as long as the whole publish, or for ever.

A single lost request then cost ten minutes, and one topic in trouble held up the others.
"""

from __future__ import annotations

import grpc

from beam_hedge import HedgingPublisher, PublishError, RetrySettings
from beam_hedge.testing import NEVER, Reply
from tests.server.serving import PATIENCE, TOPIC, all_ended, by_number, serving

OTHER = "projects/p-test/topics/other"
RETRY = RetrySettings(initial_rpc_timeout=1, total_timeout=3)


def test_a_try_that_is_ignored_is_given_up_after_its_own_timeout() -> None:
    """The second try starts soon after the first one's deadline, with a whole deadline of its own."""
    with (
        serving(by_number(NEVER, Reply(delay=0.005))) as server,
        HedgingPublisher(TOPIC, None, retry_settings=RETRY) as publisher,
    ):
        outcome = publisher.publish([b"x"]).result(PATIENCE)
        first, second = all_ended(server, 2)
    assert (outcome.attempts, outcome.retries, outcome.hedges) == (2, 1, 0)
    assert outcome.message_ids == second.message_ids
    assert outcome.refusals == (grpc.StatusCode.DEADLINE_EXCEEDED,)
    assert first.cancelled
    assert 1 <= second.arrival - first.arrival < 2
    assert all(each.time_left is not None and 0.5 < each.time_left < 1.1 for each in (first, second))


def test_the_total_timeout_ends_a_batch_and_other_topics_go_on() -> None:
    """Three tries fit into 3 s, none of them without time left; meanwhile another topic is published to."""

    def holds_up(topic: str) -> Reply | None:
        return NEVER if topic == TOPIC else None

    with (
        serving(lambda record: holds_up(record.topic)) as server,
        HedgingPublisher(TOPIC, None, retry_settings=RETRY) as publisher,
    ):
        server.create_topic(OTHER)
        stuck = publisher.publish([b"stuck"])
        healthy = 0
        # One after the other, for as long as the stuck one is out.
        while not stuck.done():
            publisher.publish([b"healthy"], topic=OTHER).result(PATIENCE)
            healthy += 1
        error = stuck.exception(PATIENCE)
        records = all_ended(server, 3 + healthy)
        assert len(server.messages(OTHER)) == healthy
    tries = [record for record in records if record.topic == TOPIC]
    others = [record for record in records if record.topic == OTHER]
    assert isinstance(error, PublishError)
    assert error.status is grpc.StatusCode.DEADLINE_EXCEEDED
    assert error.attempts == len(tries) <= 3
    assert error.retries == len(tries) - 1 >= 1
    assert all(each.time_left is not None and 0 < each.time_left < 1.1 for each in tries)
    ended = max(each.ended for each in tries if each.ended is not None)
    # The first one may have waited for its connection before it arrived.
    assert 2 < ended - tries[0].arrival < 5
    # No try of the stuck batch held up the healthy ones: each was answered before the last try ended.
    assert healthy > 10
    assert all(each.ended is not None and each.ended - each.arrival < 1 for each in others)
