"""The service answers late, or never."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge import HedgingPublisher, RetrySettings
from beam_hedge.testing import NEVER, Reply
from tests.faults.publishing import RETRY, Caller, FirstTry, stored
from tests.server.serving import EAGER, TOPIC, by_attempt, serving

if TYPE_CHECKING:
    from beam_hedge import HedgingSettings
    from beam_hedge.testing import Script
    from tests.faults.row import Matrix

SECTION = "Answers that are late or do not come"
MESSAGES = 20
SHORT = RetrySettings(
    initial_rpc_timeout=0.4, initial_retry_delay=0.02, retry_delay_multiplier=2, max_retry_delay=0.1
)
# No answer to an original, and one to every hedge.
ONLY_HEDGES = by_attempt(NEVER, None)
HALF_A_SECOND_LATE = by_attempt(Reply(delay=0.5), None)
REFUSED_HEDGES = by_attempt(Reply(delay=0.5), Reply(status=grpc.StatusCode.PERMISSION_DENIED))


def _publish(
    script: Script, settings: HedgingSettings | None, retry: RetrySettings
) -> tuple[Caller, list[bytes]]:
    with (
        serving(script) as server,
        HedgingPublisher(TOPIC, settings, retry_settings=retry) as publisher,
    ):
        caller = Caller(publisher)
        caller.publish_each(MESSAGES)
        caller.wait()
    return caller, stored(server)


@pytest.mark.parametrize(
    ("fault", "script"),
    [
        ("the service never answers originals", ONLY_HEDGES),
        ("originals are answered half a second late, and stored like their hedges", HALF_A_SECOND_LATE),
    ],
    ids=["never", "late"],
)
def test_hedges_are_answered(fault: str, script: Script, matrix: Matrix) -> None:
    """What an original does not bring a hedge does; the service stores both, as at-least-once allows."""
    caller, found = _publish(script, EAGER, RETRY)
    row = caller.row(matrix, fault, section=SECTION, stored=found)
    assert row.acknowledged == MESSAGES
    assert 0 < row.duplicated <= row.hedges


def test_hedges_are_refused(matrix: Matrix) -> None:
    """A hedge that is refused fails nothing while its original is only late."""
    caller, found = _publish(REFUSED_HEDGES, EAGER, RETRY)
    row = caller.row(
        matrix, "originals are answered half a second late, hedges are refused", section=SECTION, stored=found
    )
    assert (row.acknowledged, row.duplicated) == (MESSAGES, 0)
    assert row.hedges


@pytest.mark.parametrize(
    ("fault", "reply"),
    [
        ("DEADLINE_EXCEEDED: the first try of each is never answered, and there is no hedging", NEVER),
        ("the first try of each is answered after its deadline, and there is no hedging", Reply(delay=0.8)),
    ],
    ids=["never", "late"],
)
def test_a_deadline_passes(fault: str, reply: Reply, matrix: Matrix) -> None:
    """A try that was given up is made again; that the first one was stored shows as a copy."""
    caller, found = _publish(FirstTry(reply), None, SHORT)
    row = caller.row(matrix, fault, section=SECTION, stored=found)
    assert row.acknowledged == MESSAGES
    assert row.duplicated
    assert all(
        grpc.StatusCode.DEADLINE_EXCEEDED in outcome.refusals and outcome.retries for outcome in caller.outcomes
    )


@pytest.mark.parametrize("settings", [EAGER, None], ids=["hedged", "plain"])
def test_nothing_is_ever_answered(settings: HedgingSettings | None, matrix: Matrix) -> None:
    """When the time for all tries has passed the caller is told, and does not wait for ever."""
    retry = RetrySettings(initial_rpc_timeout=0.4, total_timeout=1.0, initial_retry_delay=0.02)
    caller, found = _publish(NEVER, settings, retry)
    hedging = "hedged" if settings else "not hedged"
    row = caller.row(
        matrix, f"nothing is answered until the total timeout, {hedging}", section=SECTION, stored=found
    )
    assert (row.acknowledged, row.failed) == (0, MESSAGES)
    assert {error.status for error in caller.errors} == {grpc.StatusCode.DEADLINE_EXCEEDED}
    # The same bucket for all: what it holds at the start, as nothing refills it.
    assert row.hedges <= EAGER.initial_tokens
