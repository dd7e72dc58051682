"""The sink's Beam metrics are exact, and there from the first bundle on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apache_beam as beam
import grpc
import pytest

from beam_hedge import RetrySettings, WriteToPubSubHedged
from beam_hedge.metrics import COUNTERS, DISTRIBUTIONS, GAUGE, NAMESPACE
from beam_hedge.testing import NEVER, Reply
from tests.beam.pipelines import RUNNERS, batches_of, counters, run_pipeline
from tests.server.serving import EAGER, TOPIC, UNHURRIED, by_attempt, serving

if TYPE_CHECKING:
    from apache_beam.metrics.cells import DistributionResult, GaugeResult
    from apache_beam.runners.runner import PipelineResult

BOTH = pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
ELEMENTS = [b"%03d" % number for number in range(20)]


def distributions(result: PipelineResult) -> dict[str, DistributionResult]:
    """Returns the sink's distributions of a pipeline that has ended."""
    found = result.metrics().query(beam.metrics.MetricsFilter().with_namespace(NAMESPACE))
    return {each.key.metric.name: each.result for each in found["distributions"]}


def tokens(result: PipelineResult) -> GaugeResult:
    """Returns the sink's gauge of a pipeline that has ended."""
    found = result.metrics().query(beam.metrics.MetricsFilter().with_namespace(NAMESPACE))
    gauge: GaugeResult
    [gauge] = [each.result for each in found["gauges"] if each.key.metric.name == GAUGE]
    return gauge


@BOTH
def test_all_is_counted_when_all_goes_well(runner: str) -> None:
    """Messages, bytes, batches and attempts are what the service saw, to the last one."""
    with serving() as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=batches_of(1000))
        result = run_pipeline(ELEMENTS, transform, RUNNERS[runner])
        requests = server.requests
    zero = dict.fromkeys(COUNTERS, 0)
    assert counters(result) == {
        **zero,
        "messages_published": 20,
        "bytes_published": sum(record.size for record in requests),
        "batches_published": len(requests),
        "publish_attempts": len(requests),
    }
    found = distributions(result)
    assert set(found) == set(DISTRIBUTIONS)
    assert (found["batch_messages"].sum, found["batch_messages"].count) == (20, len(requests))
    assert found["batch_bytes"].sum == sum(record.size for record in requests)
    assert found["attempts_per_batch"].max == 1
    assert found["publish_latency_ms"].count == len(requests)


@BOTH
def test_counters_that_are_zero_are_there(runner: str) -> None:
    """An alert on `batches_failed` needs the counter before the first failure."""
    with serving():
        result = run_pipeline([b"x"], WriteToPubSubHedged(TOPIC, UNHURRIED), RUNNERS[runner])
    assert set(counters(result)) == set(COUNTERS)


@BOTH
def test_hedges_are_counted(runner: str) -> None:
    """Each batch whose original hangs counts one hedge sent, one won and one attempt cancelled."""
    with serving(by_attempt(NEVER, None)) as server:
        transform = WriteToPubSubHedged(TOPIC, EAGER, batch_settings=batches_of(1000))
        result = run_pipeline(ELEMENTS, transform, RUNNERS[runner])
    found = counters(result)
    assert found["messages_published"] == 20
    # On a busy machine a hedge can be late itself; then there is a second one, so only the sums are sure.
    assert found["hedges_won"] == found["batches_published"] == server.ledger().answered > 0
    assert found["publish_attempts"] == found["batches_published"] + found["hedges_sent"]
    assert found["attempts_cancelled"] == found["hedges_sent"]
    assert found["hedges_failed"] == found["retries"] == found["batches_failed"] == 0


@BOTH
def test_suspicions_of_connections_are_counted(runner: str) -> None:
    """What happened to connections is there from the start, and counted when one holds up a batch."""
    names = ("connections_suspected", "connections_replaced")
    with serving():
        quiet = counters(run_pipeline([b"x"], WriteToPubSubHedged(TOPIC, UNHURRIED), RUNNERS[runner]))
    with serving(by_attempt(NEVER, None)):
        late = counters(run_pipeline([b"x"], WriteToPubSubHedged(TOPIC, EAGER), RUNNERS[runner]))
    assert [quiet[name] for name in names] == [0, 0]
    # On a busy machine the hedge's connection may be late as well.
    assert late["connections_suspected"] in {1, 2}
    assert late["connections_replaced"] == 0


@BOTH
def test_retries_are_counted(runner: str) -> None:
    """A batch that is refused twice counts two retries and three attempts."""
    refuse = Reply(status=grpc.StatusCode.UNAVAILABLE)
    retry = RetrySettings(initial_retry_delay=0.01)
    with serving({1: refuse, 2: refuse}):
        transform = WriteToPubSubHedged(TOPIC, None, retry_settings=retry, batch_settings=batches_of(1000))
        found = counters(run_pipeline([b"one"], transform, RUNNERS[runner]))
    assert (found["retries"], found["publish_attempts"], found["batches_published"]) == (2, 3, 1)


@BOTH
def test_the_gauge_shows_the_bucket(runner: str) -> None:
    """The tokens that are left can be watched."""
    with serving() as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=batches_of(1000))
        result = run_pipeline([b"one"], transform, RUNNERS[runner])
        assert server.ledger().requests == 1
    assert tokens(result).value == 20_100
