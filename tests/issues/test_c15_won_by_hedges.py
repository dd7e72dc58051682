"""C15. Batches that a hedge had saved were counted wrongly, or their cancelled originals filled the log.

A user who tunes hedging by these numbers tunes it wrongly, and one who reads the log believes it broken.
"""

from __future__ import annotations

import gc
from concurrent.futures import wait
from typing import TYPE_CHECKING

from beam_hedge import HedgingPublisher, HedgingSettings, WriteToPubSubHedged
from beam_hedge.testing import NEVER, Reply
from tests.beam.pipelines import batches_of, counters, run_pipeline
from tests.server.serving import PATIENCE, TOPIC, by_attempt, serving

if TYPE_CHECKING:
    import pytest

# A long delay: on a busy machine, too, the hedge has answered before a second one is due.
SETTINGS = HedgingSettings(hedge_delay=0.8, initial_tokens=20)
SLOW_ORIGINALS = by_attempt(NEVER, Reply(delay=0.02))


def test_outcomes_tell_of_ten_saved_batches(caplog: pytest.LogCaptureFixture) -> None:
    """Ten batches of three are won by ten hedges, each one hedge delay after its original was sent."""
    with serving(SLOW_ORIGINALS), HedgingPublisher(TOPIC, SETTINGS) as publisher:
        futures = [publisher.publish([b"%d %d" % (batch, n) for n in range(3)]) for batch in range(10)]
        assert not wait(futures, PATIENCE).not_done
        outcomes = [future.result(0) for future in futures]
    gc.collect()
    assert sum(outcome.messages for outcome in outcomes) == 30
    assert [(outcome.hedges, outcome.winner, outcome.hedges_failed) for outcome in outcomes] == [(1, 1, 0)] * 10
    assert all(0.8 <= outcome.latency < PATIENCE / 2 for outcome in outcomes)
    assert "never retrieved" not in caplog.text
    assert not [record for record in caplog.records if record.name.startswith("asyncio")]


def test_counters_tell_of_ten_saved_batches() -> None:
    """The sink's counters say the same."""
    with serving(SLOW_ORIGINALS):
        transform = WriteToPubSubHedged(TOPIC, SETTINGS, batch_settings=batches_of(3))
        elements = [b"%d" % number for number in range(30)]
        found = counters(run_pipeline(elements, transform, ["--runner=FnApiRunner"]))
    assert found["messages_published"] == 30
    assert found["batches_published"] == found["hedges_sent"] == found["hedges_won"] == 10
    assert found["publish_attempts"] == 20
    assert found["attempts_cancelled"] == 10
    assert (
        found["batches_failed"] == found["messages_failed"] == found["hedges_failed"] == found["retries"] == 0
    )
