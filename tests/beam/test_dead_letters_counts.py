"""Dead letters beside what else the sink gives: counters, outcomes, ids, topics and later steps."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import grpc
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage

from beam_hedge import WriteToPubSubHedged
from beam_hedge.testing import Reply
from tests.beam.collecting import Collector, create, finish, make_pipeline, run_for_failed
from tests.beam.pipelines import RUNNERS, batches_of, counters, run_pipeline
from tests.beam.test_dead_letters import refuse
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, held, serving

if TYPE_CHECKING:
    from beam_hedge import PublishOutcome

BOTH = pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
DEAD_TOPIC = "projects/p-test/topics/dead"


@BOTH
def test_counters_tell_published_from_failed(runner: str) -> None:
    """`messages_failed` is the number of dead letters, and `messages_published` that of all others."""
    elements = [b"good %d" % number for number in range(50)]
    elements[7] = b""
    elements[21] = b"refused 21"
    elements[33] = b"refused 33"
    with serving(refuse) as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=batches_of(10), dead_letter=True)
        result, failed = run_for_failed(elements, transform, runner)
        ledger = server.ledger()
    found = counters(result)
    assert (len(failed), found["messages_failed"]) == (3, 3)
    assert found["messages_published"] == ledger.messages == 47
    assert found["batches_published"] == ledger.answered
    # Each request that was refused was a batch that failed, parts included.
    assert found["batches_failed"] == ledger.failed["INVALID_ARGUMENT"]
    assert found["publish_attempts"] == ledger.requests
    assert found["retries"] == found["hedges_sent"] == 0


@BOTH
def test_outcomes_are_those_of_what_was_published(runner: str) -> None:
    """With outcomes on, too, their ids are those of all good messages, the parts of split batches included."""
    elements = [b"refused" if number == 5 else b"good %d" % number for number in range(20)]
    with serving(refuse) as server:
        pipeline, failed, published = make_pipeline(runner), Collector(), Collector()
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, dead_letter=True, with_outcomes=True)
        result = create(pipeline, elements) | transform
        failed.take(result.failed)
        published.take(result.published)
        finish(pipeline)
        ids = {message.message_id for message in server.messages(TOPIC)}
    told = [message_id for outcome in published.values for message_id in outcome.message_ids]
    assert sorted(told) == sorted(ids)
    assert sum(outcome.messages for outcome in published.values) == 19
    assert [letter.element for letter in failed.values] == [b"refused"]


_looked = threading.Event()


def look(_seed: bytes, outcomes: list[PublishOutcome]) -> int:
    """Notes that the later step has started, and counts what it was told of."""
    _looked.set()
    return sum(outcome.messages for outcome in outcomes)


@BOTH
def test_a_later_step_waits_for_the_write(runner: str) -> None:
    """A step that takes `published` starts when the service has the messages, and not before."""
    _looked.clear()
    pipeline, counted = make_pipeline(runner), Collector()
    transform = WriteToPubSubHedged(TOPIC, UNHURRIED, with_outcomes=True)
    published = (create(pipeline, [b"a", b"b"]) | transform).published
    counted.take(pipeline | beam.Impulse() | beam.Map(look, beam.pvalue.AsList(published)))
    with serving() as server, ThreadPoolExecutor(1) as pool:
        with held(server):
            running = pool.submit(finish, pipeline)
            server.wait_for(lambda ledger: ledger.open >= 1, timeout=PATIENCE)
            assert not _looked.wait(0.3)
        running.result(PATIENCE)
        assert server.ledger().messages == 2
    assert _looked.is_set()
    assert counted.values == [2]


@BOTH
@pytest.mark.parametrize("bad", [PubsubMessage(b"refused", {"k": "v"}), PubsubMessage(b"x", {"k": "v" * 1025})])
def test_with_labels_a_dead_letter_is_the_element_as_it_came(runner: str, bad: PubsubMessage) -> None:
    """The labels that the sink adds, and the pairs that it makes on the way, are not seen in dead letters."""
    good = PubsubMessage(b"good", {"k": "v"})
    transform = WriteToPubSubHedged(
        TOPIC,
        UNHURRIED,
        with_attributes=True,
        id_label="id",
        timestamp_attribute="ts",
        batch_settings=batches_of(10),
        dead_letter=True,
    )
    with serving(refuse) as server:
        _, failed = run_for_failed([good, bad, good], transform, runner)
        stored = server.messages(TOPIC)
    assert [letter.element for letter in failed] == [bad]
    assert bad.attributes.keys() == failed[0].element.attributes.keys() == {"k"}
    assert [message.data for message in stored] == [b"good", b"good"]
    assert all(message.attributes.keys() == {"k", "id", "ts"} for message in stored)


def test_a_message_keeps_its_id_when_its_batch_is_split() -> None:
    """The parts of a refused batch carry the ids that the refused request had."""
    elements = [b"refused" if number == 2 else b"good %d" % number for number in range(8)]
    transform = WriteToPubSubHedged(
        TOPIC, UNHURRIED, id_label="id", batch_settings=batches_of(8), dead_letter=True
    )
    with serving(refuse) as server:
        run_for_failed(elements, transform)
        first, *parts = server.requests
        stored = {message.attributes["id"]: message.data for message in server.messages(TOPIC)}
    refused = {message.attributes["id"]: message.data for message in first.messages}
    assert len(parts) >= 2
    assert len(stored) == 7
    assert {key: data for key, data in refused.items() if data != b"refused"}.items() <= stored.items()


def test_dead_letters_of_worker_processes_can_be_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead letters travel between processes, and are themselves what another sink can publish."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    elements = [b"refused %d" % number if number % 5 == 0 else b"good %d" % number for number in range(40)]

    class Both(beam.PTransform[Any, Any]):
        def expand(self, source: Any) -> Any:
            failed = (source | WriteToPubSubHedged(TOPIC, UNHURRIED, dead_letter=True)).failed
            to_text = beam.Map(lambda letter: letter.reason.encode() + b": " + letter.element)
            return failed | to_text.with_output_types(bytes) | "Dead" >> WriteToPubSubHedged(DEAD_TOPIC)

    with serving(refuse) as server:
        server.create_topic(DEAD_TOPIC)
        run_pipeline(elements, Both(), RUNNERS["processes"])  # type: ignore[arg-type]
        stored = [message.data for message in server.messages(TOPIC)]
        dead = [message.data for message in server.messages(DEAD_TOPIC)]
    assert sorted(stored) == sorted(element for element in elements if element.startswith(b"good"))
    assert sorted(dead) == sorted(b"the schema says no: refused %d" % number for number in range(0, 40, 5))


def test_bad_messages_of_one_topic_leave_others_alone() -> None:
    """With a topic by element, only the batch of the topic that refuses a message is split."""
    other = "projects/p-test/topics/other"
    elements = [b"refused", b"good a", b"good b", b"other a", b"other b"]

    def topic_of(element: bytes) -> str:
        return other if element.startswith(b"other") else TOPIC

    with serving(refuse) as server:
        server.create_topic(other)
        transform = WriteToPubSubHedged(topic_of, UNHURRIED, batch_settings=batches_of(10), dead_letter=True)
        _, failed = run_for_failed(elements, transform)
        assert server.ledger(other).requests == 1
        assert server.ledger(TOPIC).failed == {"INVALID_ARGUMENT": 2}
        assert sorted(message.data for message in server.messages(TOPIC)) == [b"good a", b"good b"]
        assert len(server.messages(other)) == 2
    assert [letter.element for letter in failed] == [b"refused"]


def test_an_invalid_status_of_a_hedge_is_no_reason_to_split() -> None:
    """A hedge's refusal is dropped: while the original is alive there is no dead letter."""
    hedged = threading.Event()

    def script(record: Any) -> Reply:
        if record.hedged_attempt_count:
            hedged.set()
            return Reply(status=grpc.StatusCode.INVALID_ARGUMENT)
        return Reply(until=hedged)

    transform = WriteToPubSubHedged(TOPIC, {"hedge_delay": 0.1, "initial_tokens": 50}, dead_letter=True)
    with serving(script) as server:
        _, failed = run_for_failed([b"a", b"b"], transform)
        assert server.ledger().messages == 2
    assert failed == []
