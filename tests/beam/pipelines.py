"""Pipelines that end in the sink, and bundles without a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from google.cloud.pubsub_v1.types import BatchSettings

from beam_hedge import WriteToPubSubHedged, lease
from beam_hedge.metrics import NAMESPACE
from tests.server.serving import TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apache_beam.runners.runner import PipelineResult

    from beam_hedge import HedgingSettings
    from beam_hedge.write_fn import WriteFn

RUNNERS = {
    "fn_api": ["--runner=FnApiRunner"],
    "bundle_based": ["--runner=BundleBasedDirectRunner"],
    "threads": [
        "--runner=FnApiRunner",
        "--direct_running_mode=multi_threading",
        "--direct_num_workers=8",
    ],
    "processes": [
        "--runner=FnApiRunner",
        "--direct_running_mode=multi_processing",
        "--direct_num_workers=2",
    ],
}


def batches_of(messages: int) -> BatchSettings:
    """Makes batches that are sealed by their count, never by their age."""
    return BatchSettings(max_messages=messages, max_bytes=1_000_000, max_latency=600)


def run_pipeline(
    elements: Iterable[Any], transform: WriteToPubSubHedged, options: list[str] = RUNNERS["fn_api"]
) -> PipelineResult:
    """Runs a pipeline of a source and the sink to its end, and returns its result."""
    pipeline = beam.Pipeline(options=PipelineOptions(options))
    # The reshuffle is what spreads elements over workers.
    _ = pipeline | beam.Create(list(elements)) | beam.Reshuffle() | transform
    result = pipeline.run()
    result.wait_until_finish()
    return result


def counters(result: PipelineResult) -> dict[str, int]:
    """Returns the sink's counters of a pipeline that has ended."""
    found = result.metrics().query(beam.metrics.MetricsFilter().with_namespace(NAMESPACE))
    return {counter.key.metric.name: counter.result for counter in found["counters"]}


def make_fn(settings: HedgingSettings | None = None, **arguments: Any) -> WriteFn:
    """Makes the sink's DoFn as the transform would, for a test that takes the place of the runner."""
    return WriteToPubSubHedged(TOPIC, settings, **arguments)._write_fn()


def run_bundle(write_fn: WriteFn, elements: Iterable[Any]) -> None:
    """Does with a DoFn what a runner does for one bundle."""
    write_fn.start_bundle()
    for element in elements:
        write_fn.process(element)
    write_fn.finish_bundle()


def close_publishers() -> None:
    """Closes all publishers that DoFns of this process have leased, and forgets their buckets."""
    registry = lease._registry
    with registry._lock:
        shared = list(registry._shared.values())
        registry._shared.clear()
    for each in shared:
        if each.publisher is not None:
            each.publisher.close(timeout=0)
