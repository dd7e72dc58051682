"""C10. A hedge's error failed a batch whose original was alive; its success hid the original's final error.

Which of the two happened depended on who was quicker, so the user saw bundles fail at random.
"""

from __future__ import annotations

import threading

import grpc

from beam_hedge import HedgingPublisher, PublishError
from beam_hedge.testing import NEVER, Reply
from tests.server.serving import EAGER, PATIENCE, TOPIC, all_ended, by_attempt, serving


def test_an_error_of_the_hedge_is_only_counted() -> None:
    """The original's answer is the outcome, though a hedge was refused before it came."""
    refused = threading.Event()
    script = by_attempt(Reply(until=refused), Reply(status=grpc.StatusCode.PERMISSION_DENIED), NEVER)
    outcomes: list[object] = []
    with serving(script) as server, HedgingPublisher(TOPIC, EAGER) as publisher:
        future = publisher.publish([b"x"])
        future.add_done_callback(outcomes.append)
        server.wait_for(lambda ledger: ledger.hedges >= 2, timeout=PATIENCE)
        refused.set()
        outcome = future.result(PATIENCE)
        original, *_ = all_ended(server, 3)
    assert outcome.winner == 0
    assert outcome.message_ids == original.message_ids
    assert outcome.hedges_failed == 1
    assert outcomes == [future]


def test_a_final_error_of_the_original_is_final() -> None:
    """The batch fails with the original's error at once; the hedge that would have succeeded is cancelled."""
    hedged = threading.Event()
    script = by_attempt(
        Reply(status=grpc.StatusCode.INVALID_ARGUMENT, details="from the original", until=hedged), NEVER
    )
    outcomes: list[object] = []
    with serving(script) as server, HedgingPublisher(TOPIC, EAGER) as publisher:
        future = publisher.publish([b"x"])
        future.add_done_callback(outcomes.append)
        server.wait_for(lambda ledger: ledger.hedges >= 1, timeout=PATIENCE)
        hedged.set()
        error = future.exception(PATIENCE)
        _, *hedges = all_ended(server, 2)
        assert publisher.token_bucket.milli_tokens == 50_000 - 1_000 * error_hedges(error)
    assert isinstance(error, PublishError)
    assert (error.status, error.details) == (grpc.StatusCode.INVALID_ARGUMENT, "from the original")
    assert error.attempts_cancelled == error.hedges >= 1
    assert all(hedge.cancelled for hedge in hedges)
    assert outcomes == [future]


def error_hedges(error: BaseException | None) -> int:
    """Returns how many hedges a failed batch had sent."""
    assert isinstance(error, PublishError)
    return error.hedges
