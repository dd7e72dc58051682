"""The sink and the publisher that a soak is about, and their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.cloud.pubsub_v1.types import BatchSettings, LimitExceededBehavior, PublishFlowControl

from beam_hedge import HedgingPublisher, HedgingSettings, RetrySettings, WriteToPubSubHedged
from benchmarks.soaking.messages import BUNDLES, DIRECT

if TYPE_CHECKING:
    from beam_hedge.write_fn import WriteFn

SETTINGS = HedgingSettings(hedge_delay=0.1, max_tokens=50, refill_ratio=0.1, initial_tokens=10)
# An outage of seconds is over within them, and one message that waits longer than the total hangs.
TOTAL_TIMEOUT = 15.0
RETRY = RetrySettings(
    initial_rpc_timeout=3.0, total_timeout=TOTAL_TIMEOUT, initial_retry_delay=0.05, max_retry_delay=1.0
)
# So little that it is reached whenever the service stands still.
_FLOW = PublishFlowControl(
    message_limit=60, byte_limit=1_000_000, limit_exceeded_behavior=LimitExceededBehavior.BLOCK
)
_BATCH = BatchSettings(max_messages=10, max_bytes=100_000, max_latency=600)


def make_write_fn() -> WriteFn:
    """Makes the DoFn of the sink, not set up."""
    sink = WriteToPubSubHedged(
        BUNDLES,
        SETTINGS,
        with_attributes=True,
        retry_settings=RETRY,
        batch_settings=_BATCH,
        flow_control=_FLOW,
        dead_letter=True,
        with_outcomes=True,
    )
    return sink._write_fn()  # noqa: SLF001 - what a runner is given


def make_publisher() -> HedgingPublisher:
    """Makes the publisher that is used without the sink."""
    return HedgingPublisher(DIRECT, SETTINGS, retry_settings=RETRY, flow_control=_FLOW)
