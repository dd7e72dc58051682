"""C13. A retry was told to the service as a hedge, or a hedge as an original.

The service then judges the user's hedging by wrong numbers, and nobody can tell from traces what was sent why.
"""

from __future__ import annotations

import base64
from typing import Any

import grpc
from google.pubsub_v1.types import PubsubClientTelemetry

from beam_hedge import HedgingPublisher, HedgingSettings, RetrySettings
from beam_hedge.telemetry import HEADER
from beam_hedge.testing import NEVER, Reply
from tests.server.serving import PATIENCE, TOPIC, all_ended, by_number, serving

_Telemetry: Any = PubsubClientTelemetry.pb()


def test_a_retry_is_attempt_0_and_a_hedge_is_not() -> None:
    """Original, its retry and the hedge say 0, 0 and 1, tell one start time and carry the same messages."""
    script = by_number(Reply(status=grpc.StatusCode.UNAVAILABLE), NEVER)
    settings = HedgingSettings(hedge_delay=0.5, initial_tokens=5)
    retry = RetrySettings(initial_retry_delay=0.01)
    with serving(script) as server, HedgingPublisher(TOPIC, settings, retry_settings=retry) as publisher:
        outcome = publisher.publish([b"a", b"b"]).result(PATIENCE)
        records = all_ended(server, 3)
    told = [
        _Telemetry.FromString(base64.b64decode(record.metadata[HEADER])).publish_operation for record in records
    ]
    assert [operation.hedged_attempt_count for operation in told] == [0, 0, 1]
    assert len({operation.publish_start_time.ToNanoseconds() for operation in told}) == 1
    assert len({record.raw for record in records}) == 1
    assert (outcome.retries, outcome.hedges, outcome.attempts, outcome.winner) == (1, 1, 3, 1)
