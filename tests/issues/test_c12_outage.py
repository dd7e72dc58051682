"""C12. In an outage every late batch was hedged: twice the load for a service that could least bear it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from beam_hedge import HedgingPublisher, HedgingSettings
from tests.server.serving import PATIENCE, TOPIC, held, serving

SETTINGS = HedgingSettings(hedge_delay=0.3, max_tokens=50, refill_ratio=0.1)


def test_an_outage_is_hedged_at_most_as_often_as_the_bucket_allows() -> None:
    """A stall of everything costs 50 hedges at most; time earns no new ones, and all is published at last."""
    with (
        serving() as server,
        HedgingPublisher(TOPIC, SETTINGS) as publisher,
        ThreadPoolExecutor(8) as pool,
    ):
        bucket = publisher.token_bucket
        while bucket.milli_tokens < 50_000:
            for future in [publisher.publish([b"calm"]) for _ in range(20)]:
                future.result(PATIENCE)
                assert bucket.milli_tokens <= 50_000
        before = server.ledger()
        with held(server):
            futures = list(pool.map(lambda number: publisher.publish([b"%d" % number]), range(200)))
            server.wait_for(lambda ledger: ledger.open == 250, timeout=PATIENCE)
            assert bucket.milli_tokens == 0
            # Several hedge delays in which nothing may happen.
            with pytest.raises(TimeoutError):
                server.wait_for(lambda ledger: ledger.hedges > before.hedges + 50, timeout=1)
            assert bucket.milli_tokens == 0
        outcomes = [future.result(PATIENCE) for future in futures]
        assert sum(outcome.hedges for outcome in outcomes) == 50
        # A chain that finds no token stops for good, and says so.
        assert all(outcome.hedges_throttled for outcome in outcomes if not outcome.hedges)
        assert bucket.milli_tokens == 200 * 100
        assert {message.data for message in server.messages(TOPIC)} >= {b"%d" % n for n in range(200)}
