"""The service answers calls with errors that will pass: they cost retries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge import HedgingPublisher
from beam_hedge.retry import RETRYABLE
from beam_hedge.testing import Reply
from tests.faults.publishing import RETRY, Caller, FirstTry, stored
from tests.server.serving import TOPIC, UNHURRIED, by_number, serving

if TYPE_CHECKING:
    from tests.faults.row import Matrix

SECTION = "Errors that the service answers"
MESSAGES = 20


def test_a_burst_of_unavailable(matrix: Matrix) -> None:
    """A service that refuses everything for a moment costs retries, and no message."""
    burst = [Reply(status=grpc.StatusCode.UNAVAILABLE)] * (2 * MESSAGES)
    with (
        serving(by_number(*burst)) as server,
        HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher,
    ):
        caller = Caller(publisher)
        caller.publish_each(MESSAGES)
        caller.wait()
    row = caller.row(
        matrix, f"UNAVAILABLE for {len(burst)} calls in a row", section=SECTION, stored=stored(server)
    )
    assert (row.acknowledged, row.duplicated, row.hedges) == (MESSAGES, 0, 0)
    assert sum(outcome.retries for outcome in caller.outcomes) == len(burst)


@pytest.mark.parametrize("status", sorted(each.name for each in RETRYABLE))
def test_a_retryable_status(status: str, matrix: Matrix) -> None:
    """Whatever google-cloud-pubsub tries again is tried again here, and then it is published."""
    reply = Reply(status=grpc.StatusCode[status])
    with (
        serving(FirstTry(reply)) as server,
        HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher,
    ):
        caller = Caller(publisher)
        caller.publish_each(MESSAGES)
        caller.wait()
    row = caller.row(matrix, f"{status} at the first try of each", section=SECTION, stored=stored(server))
    assert (row.acknowledged, row.duplicated, row.hedges) == (MESSAGES, 0, 0)
    assert {outcome.retries for outcome in caller.outcomes} == {1}


def test_an_error_after_the_messages_were_stored(matrix: Matrix) -> None:
    """An answer that says UNAVAILABLE does not say that nothing is stored: the retry makes a copy."""
    reply = Reply(status=grpc.StatusCode.UNAVAILABLE, stored=True)
    with (
        serving(FirstTry(reply)) as server,
        HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher,
    ):
        caller = Caller(publisher)
        caller.publish_each(MESSAGES)
        caller.wait()
    row = caller.row(
        matrix,
        "UNAVAILABLE at the first try of each, although it was stored",
        section=SECTION,
        stored=stored(server),
    )
    assert (row.acknowledged, row.duplicated) == (MESSAGES, MESSAGES)


def test_a_spent_quota(matrix: Matrix) -> None:
    """RESOURCE_EXHAUSTED for quota is waited for."""
    quota = [Reply(status=grpc.StatusCode.RESOURCE_EXHAUSTED, details="Quota exceeded")] * MESSAGES
    with (
        serving(by_number(*quota)) as server,
        HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher,
    ):
        caller = Caller(publisher)
        caller.publish_each(MESSAGES)
        caller.wait()
    row = caller.row(matrix, "RESOURCE_EXHAUSTED: a quota is spent", section=SECTION, stored=stored(server))
    assert (row.acknowledged, row.duplicated) == (MESSAGES, 0)
