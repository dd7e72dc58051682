"""C07. An answer with too few or too many ids was taken for a success, or tried again.

The user either got ids that belong to other messages, or each message twice: the service has stored them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge import HedgingPublisher, PublishError
from beam_hedge.metrics import SinkMetrics
from beam_hedge.testing import NEVER, Reply
from tests.beam.pipelines import make_fn, run_bundle
from tests.server.serving import EAGER, PATIENCE, TOPIC, UNHURRIED, all_ended, by_attempt, eventually, serving

if TYPE_CHECKING:
    from concurrent.futures import Future

    from beam_hedge import PublishOutcome

MESSAGES = [b"1", b"2", b"3"]
WRONG = pytest.mark.parametrize("ids", [2, 0, 4])


@WRONG
def test_the_batch_fails_and_is_not_tried_again(ids: int) -> None:
    """A wrong answer to the original is a final INTERNAL error that says that the messages may be stored."""
    with serving(Reply(ids=ids)) as server, HedgingPublisher(TOPIC, UNHURRIED) as publisher:
        error = publisher.publish(MESSAGES).exception(PATIENCE)
        assert publisher.token_bucket.milli_tokens == 20_000
    assert isinstance(error, PublishError)
    assert (error.status, error.attempts) == (grpc.StatusCode.INTERNAL, 1)
    assert f"{ids} ids came back for 3 messages" in str(error)
    assert "may be stored" in str(error)
    assert server.ledger().requests == 1


@WRONG
def test_the_bundle_fails_and_nothing_counts_as_published(ids: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters do not claim what nobody confirmed."""
    counted: list[PublishOutcome | PublishError] = []
    monkeypatch.setattr(SinkMetrics, "add", lambda _, result: counted.append(result))
    with serving(Reply(ids=ids)) as server:
        write_fn = make_fn(UNHURRIED)
        write_fn.setup()
        with pytest.raises(PublishError, match="INTERNAL"):
            run_bundle(write_fn, MESSAGES)
        assert write_fn._lease.publisher.token_bucket.milli_tokens == 20_000
        write_fn.teardown()
        assert server.ledger().requests == 1
    assert [type(result) for result in counted] == [PublishError]


@WRONG
def test_a_hedge_with_a_wrong_answer_is_dropped(ids: int) -> None:
    """Another attempt can still bring the right answer; the wrong one is only counted."""
    with (
        serving(by_attempt(NEVER, Reply(ids=ids), None)) as server,
        HedgingPublisher(TOPIC, EAGER) as publisher,
    ):
        future: Future[PublishOutcome] = publisher.publish(MESSAGES)
        outcome = future.result(PATIENCE)
        all_ended(server, 3)
        eventually(lambda: publisher.token_bucket.milli_tokens == 50_000 - 2_000 + 100)
    assert (outcome.winner, outcome.hedges_failed, len(outcome.message_ids)) == (2, 1, 3)
