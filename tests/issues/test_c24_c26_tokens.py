"""C24, C25, C26. A bucket that counted in fractions, or started full, let out hedges that nobody had earned.

In floating point ten refills of 0.1 are less than one token, so the user's tenth batch was not hedged either.
"""

from __future__ import annotations

import pytest

from beam_hedge import HedgingPublisher, HedgingSettings
from beam_hedge.testing import NEVER, Reply
from beam_hedge.token_bucket import TokenBucket
from tests.server.serving import PATIENCE, TOPIC, all_ended, by_attempt, serving


def test_c24_two_tokens_are_two_hedges() -> None:
    """However late the original is, two tokens are worth two hedges; its answer then earns the refill."""
    settings = HedgingSettings(hedge_delay=0.1, max_tokens=2, initial_tokens=2)
    # Five delays and as many again, for busy machines.
    script = by_attempt(Reply(delay=1), NEVER)
    with serving(script) as server, HedgingPublisher(TOPIC, settings) as publisher:
        outcome = publisher.publish([b"x"]).result(PATIENCE)
        records = all_ended(server, 3)
        assert publisher.token_bucket.milli_tokens == 100
    assert [record.hedged_attempt_count for record in records] == [0, 1, 2]
    assert (outcome.winner, outcome.hedges, outcome.hedges_throttled) == (0, 2, 1)


def test_c25_an_empty_bucket_is_no_hedge() -> None:
    """A new publisher has earned nothing yet: a slow publish is one request."""
    with (
        serving(Reply(delay=0.7)) as server,
        HedgingPublisher(TOPIC, HedgingSettings(hedge_delay=0.1)) as publisher,
    ):
        outcome = publisher.publish([b"x"]).result(PATIENCE)
        assert publisher.token_bucket.milli_tokens == 100
    assert server.ledger().requests == 1
    assert (outcome.attempts, outcome.hedges, outcome.hedges_throttled) == (1, 0, 1)


@pytest.mark.parametrize(
    ("ratio", "refills", "milli_tokens", "is_a_token"),
    [
        (0.1, 9, 900, False),
        (0.1, 10, 1000, True),
        (0.001, 999, 999, False),
        (0.001, 1000, 1000, True),
        (0.0019, 1, 2, False),
        (0.0014, 1, 1, False),
        (0.0015, 1, 2, False),
        (0.2, 5, 1000, True),
    ],
)
def test_c26_refills_are_exact(ratio: float, refills: int, milli_tokens: int, is_a_token: bool) -> None:
    """Tokens are counted in whole thousandths, rounded half up."""
    bucket = TokenBucket(max_tokens=50, refill_ratio=ratio)
    for _ in range(refills):
        bucket.refill()
    assert bucket.milli_tokens == milli_tokens
    assert bucket.try_acquire() is is_a_token


def test_c26_the_eleventh_batch_of_a_new_publisher_can_be_hedged() -> None:
    """Ten published batches of 0.1 earn exactly the one hedge that the eleventh needs."""
    settings = HedgingSettings(hedge_delay=0.5, refill_ratio=0.1)
    with serving() as server, HedgingPublisher(TOPIC, settings) as publisher:
        for _ in range(10):
            publisher.publish([b"quick"]).result(PATIENCE)
        assert publisher.token_bucket.milli_tokens == 1_000
        server.script = by_attempt(NEVER, None)
        assert publisher.publish([b"slow"]).result(PATIENCE).winner == 1
        assert publisher.token_bucket.milli_tokens == 100
