"""An instance that is used again: after a failure, in a repetition, after a second teardown."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import grpc
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from beam_hedge import FailedMessage, PublishError, PublishOutcome, WriteToPubSubHedged
from beam_hedge.testing import Reply
from tests.beam.collecting import Collector, create, finish
from tests.beam.pipelines import batches_of, counters, make_fn, run_bundle
from tests.beam.workers import run_tracked, working
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    from beam_hedge.testing import RequestRecord

OTHER = "projects/p-test/topics/other"


def choose_topic(element: bytes) -> str:
    """Sends an element to one of two topics, or fails as a user's function can."""
    if element == b"boom":
        raise ZeroDivisionError
    return OTHER if element.startswith(b"other") else TOPIC


def refuse(record: RequestRecord) -> Reply | None:
    """Refuses requests that hold one of two messages: one for good, and later, the other as invalid."""
    data = {message.data for message in record.messages}
    if b"denied" in data:
        return Reply(status=grpc.StatusCode.PERMISSION_DENIED, delay=0.1)
    return Reply(status=grpc.StatusCode.INVALID_ARGUMENT) if b"invalid" in data else None


def bare(output: Any) -> Any:
    """Takes off an output what Beam wants around it: its window, and its tag if it has one."""
    while hasattr(output, "value"):
        output = output.value
    return output


@pytest.mark.parametrize("last", [b"boom", b"denied"], ids=["in process", "in finish_bundle"])
def test_a_bundle_after_a_failed_one_tells_of_itself_only(last: bytes) -> None:
    """Neither elements nor outcomes, dead letters or counts of the failed bundle come out with the next one."""
    with serving(refuse) as server:
        server.create_topic(OTHER)

        def make() -> Any:
            # Made as the transform does for a topic function.
            transform = WriteToPubSubHedged(
                choose_topic,
                UNHURRIED,
                batch_settings=batches_of(2),
                dead_letter=True,
                with_outcomes=True,
            )
            return transform._write_fn()

        with working(make, 1, run_tracked) as [worker]:
            # Full batches, a dead letter when it comes and one by its answer, and begun batches of both topics.
            bad = worker.run_bundle(b"1", b"2", b"", b"3", b"invalid", b"4", b"other 5", last)
            assert isinstance(bad.exception(PATIENCE), (PublishError, ZeroDivisionError))
            before = worker.counters()
            outputs = worker.run_bundle(b"good", b"other good", b"").result(PATIENCE)
            after = worker.counters()
        stored = Counter(message.data for topic in (TOPIC, OTHER) for message in server.messages(topic))
    kinds = Counter(type(bare(each)) for each in outputs)
    assert kinds == {PublishOutcome: 2, FailedMessage: 1}
    assert stored[b"good"] == stored[b"other good"] == 1
    changes = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
    assert {name: changes[name] for name in changes if ":" not in name and "bytes" not in name} == {
        "messages_published": 2,
        "batches_published": 2,
        "publish_attempts": 2,
        "messages_failed": 1,
    }


def test_outcomes_of_a_repeated_bundle_are_those_of_its_last_repetition() -> None:
    """With `bundle_repeat` messages are published each time; one set of outcomes and dead letters counts."""
    with serving() as server:
        options = PipelineOptions(["--runner=FnApiRunner", "--direct_runner_bundle_repeat=2"])
        pipeline, failed, published = beam.Pipeline(options=options), Collector(), Collector()
        transform = WriteToPubSubHedged(
            TOPIC, UNHURRIED, batch_settings=batches_of(2), dead_letter=True, with_outcomes=True
        )
        result = create(pipeline, [b"a", b"b", b"", b"c"]) | transform
        # What is behind a reshuffle gets what Beam keeps of the step before; it is itself repeated as well.
        failed.take(result.failed | "KeepFailed" >> beam.Reshuffle())
        published.take(result.published | "KeepPublished" >> beam.Reshuffle())
        found = counters(finish(pipeline))
        stored = server.messages(TOPIC)
    assert Counter(message.data for message in stored) == {b"a": 3, b"b": 3, b"c": 3}
    outcomes = set(published.values)
    assert Counter(outcome.messages for outcome in outcomes) == {2: 1, 1: 1}
    ids = {message_id for outcome in outcomes for message_id in outcome.message_ids}
    assert ids == {message.message_id for message in stored[-3:]}
    assert Counter(published.values) == dict.fromkeys(outcomes, 3)
    assert len(failed.values) == 3
    assert (found["messages_published"], found["messages_failed"]) == (3, 1)


def test_a_second_teardown_takes_nothing_from_another_instance() -> None:
    """Torn down twice in mid-bundle, an instance cancels its own request and leaves others' leases alone."""
    go = threading.Event()
    with serving(Reply(until=go), store="answer") as server, ThreadPoolExecutor(1) as pool:
        torn_down, waiting = (make_fn(UNHURRIED, batch_settings=batches_of(1)) for _ in range(2))
        for write_fn in (torn_down, waiting):
            write_fn.setup()
        torn_down.start_bundle()
        torn_down.process(b"given up")
        bundle = pool.submit(run_bundle, waiting, [b"waiting"])
        server.wait_for(lambda ledger: ledger.open == 2, timeout=PATIENCE)
        shared = waiting._lease._shared
        for _ in range(2):
            torn_down.teardown()
            assert shared.holders == {id(waiting._lease)}
        server.wait_for(lambda ledger: ledger.cancelled == 1, timeout=PATIENCE)
        go.set()
        bundle.result(PATIENCE)
        assert [message.data for message in server.messages(TOPIC)] == [b"waiting"]
        waiting.teardown()
        waiting.teardown()
        assert not shared.holders
