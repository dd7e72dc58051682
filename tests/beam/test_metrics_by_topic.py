"""Counters by topic, where elements choose their topics."""

from __future__ import annotations

import apache_beam as beam
import pytest

from beam_hedge import WriteToPubSubHedged
from beam_hedge.testing import LocalPubSub

_ONE = "projects/demo-project/topics/one"
_TWO = "projects/demo-project/topics/two"


def _topic_of(element: bytes) -> str:
    return _ONE if element.startswith(b"1") else _TWO


@pytest.mark.parametrize("runner", ["FnApiRunner", "BundleBasedDirectRunner"])
def test_messages_are_counted_by_topic(runner: str) -> None:
    """Who routes elements sees how many each topic got, and that the sum is right."""
    with LocalPubSub() as server, server.environment():
        server.create_topic(_ONE)
        server.create_topic(_TWO)
        pipeline = beam.Pipeline(runner=runner)
        _ = pipeline | beam.Create([b"1a", b"2a", b"2b"]) | WriteToPubSubHedged(_topic_of)
        result = pipeline.run()
        result.wait_until_finish()
    counters = {item.key.metric.name: item.committed for item in result.metrics().query()["counters"]}
    assert counters["messages_published:one"] == 1
    assert counters["messages_published:two"] == 2
    assert counters["messages_published"] == 3


def test_a_sink_with_one_topic_has_no_counters_by_topic() -> None:
    """A fixed topic's counters would say the same twice."""
    with LocalPubSub() as server, server.environment():
        server.create_topic(_ONE)
        pipeline = beam.Pipeline(runner="FnApiRunner")
        _ = pipeline | beam.Create([b"a"]) | WriteToPubSubHedged(_ONE)
        result = pipeline.run()
        result.wait_until_finish()
    names = [item.key.metric.name for item in result.metrics().query()["counters"]]
    assert [name for name in names if ":" in name] == []
