"""C28. A bundle failed, and its publisher went on publishing it in the background.

The runner tried the bundle again meanwhile, so the user found each message many times, of a pipeline that
had failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge import HedgingSettings, PublishError, RetrySettings, WriteToPubSubHedged
from beam_hedge.testing import NEVER, Reply
from tests.beam.pipelines import RUNNERS, batches_of, make_fn, run_bundle, run_pipeline
from tests.server.serving import PATIENCE, TOPIC, serving

if TYPE_CHECKING:
    from beam_hedge.testing import LocalPubSub, RequestRecord

HEDGED = HedgingSettings(hedge_delay=0.1, initial_tokens=50)


def check_silence(server: LocalPubSub) -> None:
    """Fails if the server gets one more request within several hedge delays and retry delays."""
    requests = server.wait_for(lambda ledger: not ledger.open, timeout=PATIENCE).requests
    with pytest.raises(TimeoutError):
        server.wait_for(lambda ledger: ledger.requests > requests or ledger.open > 0, timeout=0.7)


def test_a_timed_out_bundle_publishes_nothing_afterwards() -> None:
    """After the time-out of one batch neither it nor the others send another try or hedge."""
    retry = RetrySettings(initial_rpc_timeout=0.2, total_timeout=0.5, initial_retry_delay=0.05)
    with serving(NEVER, store="answer") as server:
        write_fn = make_fn(HEDGED, retry_settings=retry, batch_settings=batches_of(1))
        write_fn.setup()
        with pytest.raises(PublishError, match="DEADLINE_EXCEEDED"):
            run_bundle(write_fn, [b"1", b"2", b"3"])
        check_silence(server)
        assert server.messages(TOPIC) == []
        write_fn.teardown()


def test_batches_that_wait_to_retry_or_hedge_are_given_up() -> None:
    """Retries and hedges that were due after the failure are not sent."""

    def script(record: RequestRecord) -> Reply:
        if record.messages[0].data == b"bad":
            return Reply(status=grpc.StatusCode.PERMISSION_DENIED, delay=0.25)
        if record.messages[0].data == b"hedged":
            return NEVER
        return Reply(status=grpc.StatusCode.UNAVAILABLE)

    retry = RetrySettings(initial_retry_delay=0.4, max_retry_delay=0.4)
    with serving(script) as server:
        write_fn = make_fn(HEDGED, retry_settings=retry, batch_settings=batches_of(1))
        write_fn.setup()
        with pytest.raises(PublishError, match="PERMISSION_DENIED"):
            run_bundle(write_fn, [b"hedged", b"retried", b"bad"])
        check_silence(server)
        write_fn.teardown()


@pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
def test_a_failed_pipeline_publishes_nothing_afterwards(runner: str) -> None:
    """When `run()` has failed, the service hears nothing more of the pipeline."""
    retry = RetrySettings(initial_rpc_timeout=0.15, total_timeout=0.3, initial_retry_delay=0.05)
    with serving(NEVER, store="answer") as server:
        transform = WriteToPubSubHedged(TOPIC, HEDGED, retry_settings=retry, batch_settings=batches_of(1))
        with pytest.raises(Exception, match="DEADLINE_EXCEEDED"):
            run_pipeline([b"1", b"2", b"3"], transform, RUNNERS[runner])
        check_silence(server)
