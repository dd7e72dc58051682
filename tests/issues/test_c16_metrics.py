"""C16. Metrics that were updated on the publisher's own threads vanished without a word.

The user's dashboards showed half of the traffic, or none, while the pipeline was fine.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from beam_hedge import HedgingSettings, WriteToPubSubHedged
from beam_hedge.metrics import SinkMetrics
from beam_hedge.testing import NEVER
from beam_hedge.write_fn import WriteFn
from tests.beam.pipelines import RUNNERS, batches_of, counters, run_pipeline
from tests.server.serving import TOPIC, serving

if TYPE_CHECKING:
    from beam_hedge.testing import Reply, RequestRecord

ELEMENTS = [b"%02d" % number for number in range(20)]
SETTINGS = HedgingSettings(hedge_delay=0.8, initial_tokens=20)


def half_slow(record: RequestRecord) -> Reply | None:
    """Never answers the originals of even elements."""
    is_even = int(record.messages[0].data) % 2 == 0
    return NEVER if is_even and not record.hedged_attempt_count else None


@pytest.mark.parametrize("runner", ["fn_api", "bundle_based", "threads"])
def test_counts_are_exact(runner: str) -> None:
    """Of 20 messages half are hedged, and the pipeline's result says so to the last one."""
    with serving(half_slow):
        transform = WriteToPubSubHedged(TOPIC, SETTINGS, batch_settings=batches_of(1))
        found = counters(run_pipeline(ELEMENTS, transform, RUNNERS[runner]))
    assert found["messages_published"] == found["batches_published"] == 20
    assert found["hedges_sent"] == found["hedges_won"] == found["attempts_cancelled"] == 10
    assert found["publish_attempts"] == 30
    assert found["hedges_throttled"] == found["batches_failed"] == found["retries"] == 0


def test_metrics_are_updated_on_the_bundles_thread_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """All counting happens where the runner can see it."""
    counting: set[int] = set()
    bundles: set[int] = set()

    def noted(into: set[int], method: Any) -> Any:
        def call(*args: Any) -> Any:
            into.add(threading.get_ident())
            return method(*args)

        return call

    for name in ("add", "report", "start_bundle"):
        monkeypatch.setattr(SinkMetrics, name, noted(counting, getattr(SinkMetrics, name)))
    monkeypatch.setattr(WriteFn, "finish_bundle", noted(bundles, WriteFn.finish_bundle))
    with serving(half_slow):
        transform = WriteToPubSubHedged(TOPIC, SETTINGS, batch_settings=batches_of(1))
        run_pipeline(ELEMENTS[:4], transform, RUNNERS["fn_api"])
    assert counting
    assert counting <= bundles
