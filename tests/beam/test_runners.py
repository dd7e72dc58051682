"""Every element arrives, on every runner that is at hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage

from beam_hedge import HedgingSettings, WriteToPubSubHedged
from beam_hedge.testing import NEVER
from tests.beam.pipelines import RUNNERS, batches_of, counters, run_pipeline
from tests.server.serving import EAGER, TOPIC, by_attempt, serving

ELEMENTS = [b"element %d" % number for number in range(300)]
HEDGED = HedgingSettings(hedge_delay=10)


@pytest.fixture(autouse=True)
def importable_in_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have worker processes find the package."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.mark.parametrize("runner", RUNNERS)
def test_every_element_arrives(runner: str) -> None:
    """No element is lost, and none is doubled while all goes well."""
    with serving() as server:
        run_pipeline(ELEMENTS, WriteToPubSubHedged(TOPIC, HEDGED), RUNNERS[runner])
        assert Counter(message.data for message in server.messages(TOPIC)) == Counter(ELEMENTS)
        ports = {record.peer_port for record in server.requests}
    # Two worker processes have a publisher each, all else one; its second connection may not be in use yet.
    assert len(ports) in ({2, 3, 4} if runner == "processes" else {1, 2})


@pytest.mark.parametrize("runner", ["fn_api", "bundle_based", "threads"])
def test_every_element_arrives_without_hedging(runner: str) -> None:
    """`settings=None` publishes through the same path, so that the two can be compared."""
    with serving() as server:
        result = run_pipeline(ELEMENTS, WriteToPubSubHedged(TOPIC, None), RUNNERS[runner])
        assert Counter(message.data for message in server.messages(TOPIC)) == Counter(ELEMENTS)
    found = counters(result)
    assert found["messages_published"] == 300
    assert found["hedges_sent"] == found["hedges_throttled"] == 0
    assert found["publish_attempts"] == found["batches_published"] == server.ledger().requests


@pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
def test_every_element_arrives_while_every_batch_is_hedged(runner: str) -> None:
    """A service that never answers an original loses nothing and doubles no message's content."""
    with serving(by_attempt(NEVER, None), store="answer") as server:
        transform = WriteToPubSubHedged(TOPIC, EAGER, batch_settings=batches_of(100))
        found = counters(run_pipeline(ELEMENTS, transform, RUNNERS[runner]))
        assert {message.data for message in server.messages(TOPIC)} == set(ELEMENTS)
    assert found["messages_published"] == 300
    assert found["hedges_won"] == found["batches_published"]


def test_attributes_arrive() -> None:
    """With `with_attributes=True` data and attributes arrive as they are."""
    elements = [
        PubsubMessage(b"data", {"k": "v", "topic": "t", "retry": "no"}),
        PubsubMessage(b"", {"only": "attributes"}),
        PubsubMessage("grün".encode(), None),
    ]
    with serving() as server:
        run_pipeline(elements, WriteToPubSubHedged(TOPIC, HEDGED, with_attributes=True))
        arrived = {
            (message.data, tuple(sorted(message.attributes.items()))) for message in server.messages(TOPIC)
        }
    assert arrived == {
        (b"data", (("k", "v"), ("retry", "no"), ("topic", "t"))),
        (b"", (("only", "attributes"),)),
        ("grün".encode(), ()),
    }


def test_text_is_sent_as_utf_8() -> None:
    """`str` elements arrive as UTF-8 and are not decoded as something else."""
    with serving() as server:
        run_pipeline(["a", "YWJj", "é"], WriteToPubSubHedged(TOPIC, HEDGED))
        assert {message.data for message in server.messages(TOPIC)} == {b"a", b"YWJj", "é".encode()}


def test_an_empty_collection_sends_nothing() -> None:
    """A pipeline without elements succeeds and contacts no topic."""
    with serving() as server:
        run_pipeline([], WriteToPubSubHedged(TOPIC, HEDGED))
        assert server.ledger().requests == 0


def test_two_sinks_in_one_pipeline_do_not_mix() -> None:
    """Each sink's elements go to its own topic, though one engine serves both."""
    other = "projects/p-test/topics/other"
    with serving() as server:
        server.create_topic(other)
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            elements = pipeline | beam.Create(ELEMENTS)
            _ = elements | "One" >> WriteToPubSubHedged(TOPIC, HEDGED)
            _ = elements | "Two" >> WriteToPubSubHedged(other, None)
        for topic in (TOPIC, other):
            assert Counter(message.data for message in server.messages(topic)) == Counter(ELEMENTS)
