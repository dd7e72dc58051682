"""C27. Timers and losing attempts kept the payloads of finished batches alive, or sent what had changed since.

With large messages and a long hedge delay the user's worker ran out of memory while everything was fast.
"""

from __future__ import annotations

import sys
import weakref

from google.pubsub_v1.types import PubsubMessage

from beam_hedge import HedgingPublisher, HedgingSettings
from beam_hedge.batch import Batch
from beam_hedge.message import encode_data, encode_topic
from beam_hedge.testing import NEVER
from tests.server.serving import EAGER, PATIENCE, TOPIC, all_ended, by_attempt, eventually, serving


def seal(data: bytes) -> Batch:
    """Makes a batch of one message."""
    return Batch(TOPIC, encode_topic(TOPIC) + encode_data(data), 1)


def test_a_hedge_that_is_still_scheduled_holds_no_payload() -> None:
    """A batch that is answered at once is freed at once, though its hedge was due in ten seconds."""
    with serving() as server, HedgingPublisher(TOPIC, HedgingSettings(hedge_delay=10)) as publisher:
        batch = seal(b"x" * 100_000)
        request, gone = batch.request, weakref.ref(batch)
        held_by_us = sys.getrefcount(request)
        publisher.publish_batch(batch).result(PATIENCE)
        del batch
        # The batch's own reference goes with it.
        eventually(lambda: gone() is None)
        eventually(lambda: sys.getrefcount(request) <= held_by_us - 1)
        assert server.ledger().requests == 1


def test_finished_batches_are_freed_while_their_losers_end() -> None:
    """A loser that is being cancelled does not keep the payload of a batch that was won by its hedge."""
    with serving(by_attempt(NEVER, None)), HedgingPublisher(TOPIC, EAGER) as publisher:
        batches = [seal(b"%d" % number * 10_000) for number in range(10)]
        gone = [weakref.ref(batch) for batch in batches]
        futures = [publisher.publish_batch(batches.pop()) for _ in range(10)]
        for future in futures:
            assert future.result(PATIENCE).winner >= 1
        eventually(lambda: [ref() for ref in gone] == [None] * 10)


def test_a_message_that_is_changed_after_publishing_is_sent_as_it_was() -> None:
    """What a caller does with its messages after `publish()` reaches no attempt."""
    message = PubsubMessage(data=b"as published", attributes={"k": "v"})
    messages = [message]
    with serving(by_attempt(NEVER, NEVER, None)) as server, HedgingPublisher(TOPIC, EAGER) as publisher:
        future = publisher.publish(messages)
        message.data = b"changed at once"
        message.attributes["k"] = "changed"
        messages.append(PubsubMessage(data=b"added"))
        server.wait_for(lambda ledger: ledger.hedges >= 1, timeout=PATIENCE)
        message.data = b"changed later"
        future.result(PATIENCE)
        message.data = b"changed after the result"
        records = all_ended(server, 3)
    assert len({record.raw for record in records}) == 1
    [sent] = records[0].messages
    assert (sent.data, dict(sent.attributes)) == (b"as published", {"k": "v"})
