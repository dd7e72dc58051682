"""What the runner's console shows beyond the sink's own metrics: API calls by status, and lineage."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from apache_beam.metrics import monitoring_infos
from apache_beam.metrics.execution import MetricsEnvironment
from apache_beam.metrics.metric import Lineage

from beam_hedge import PublishError, RetrySettings, WriteToPubSubHedged
from beam_hedge.testing import NEVER, Reply
from tests.beam.collecting import run_for_failed
from tests.beam.pipelines import RUNNERS, batches_of, make_fn, run_bundle, run_pipeline
from tests.server.serving import EAGER, PATIENCE, TOPIC, UNHURRIED, by_attempt, by_number, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beam_hedge.testing import RequestRecord

OTHER = "projects/p-test/topics/other"
BOTH = pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])


@pytest.fixture(autouse=True)
def no_earlier_calls() -> Iterator[None]:
    """Forget the calls of earlier tests: Beam counts them for the whole process."""
    MetricsEnvironment.process_wide_container().reset()
    yield
    MetricsEnvironment.process_wide_container().reset()


def calls(topic: str = TOPIC) -> dict[str, int]:
    """Returns the calls to a topic by status, as a worker reports them to its runner when asked."""
    infos = MetricsEnvironment.process_wide_container().to_runner_api_monitoring_infos(None).values()
    found: Counter[str] = Counter()
    for info in infos:
        assert info.urn == monitoring_infos.API_REQUEST_COUNT_URN
        assert info.labels[monitoring_infos.SERVICE_LABEL] == "PubSub"
        assert info.labels[monitoring_infos.METHOD_LABEL] == "google.pubsub.v1.Publisher.Publish"
        if info.labels[monitoring_infos.RESOURCE_LABEL] == f"//pubsub.googleapis.com/{topic}":
            status = info.labels[monitoring_infos.STATUS_LABEL]
            found[status] += monitoring_infos.extract_counter_value(info)
    # A counter that was reset stays there, at 0.
    return {status: count for status, count in found.items() if count}


@BOTH
def test_successful_calls_are_counted(runner: str) -> None:
    """Each publish request that went well is one call with status ok, under the topic's resource name."""
    with serving() as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=batches_of(5))
        run_pipeline([b"%d" % number for number in range(20)], transform, RUNNERS[runner])
        assert calls() == {"ok": server.ledger().requests}


def test_refused_tries_are_counted_by_their_status() -> None:
    """Retries that a user never sees are there for whoever looks into a slow pipeline."""
    script = by_number(
        Reply(status=grpc.StatusCode.UNAVAILABLE),
        Reply(status=grpc.StatusCode.RESOURCE_EXHAUSTED),
        Reply(status=grpc.StatusCode.UNAVAILABLE),
    )
    retry = RetrySettings(initial_retry_delay=0.01, max_retry_delay=0.02)
    with serving(script):
        run_pipeline([b"x"], WriteToPubSubHedged(TOPIC, UNHURRIED, retry_settings=retry))
    assert calls() == {"ok": 1, "unavailable": 2, "resource_exhausted": 1}


def test_hedges_and_cancelled_losers_are_counted() -> None:
    """Every request that hedging adds is a call as well: none is hidden."""
    with serving(by_attempt(NEVER, Reply(status=grpc.StatusCode.ABORTED), None)) as server:
        run_pipeline([b"x"], WriteToPubSubHedged(TOPIC, EAGER))
        requests = server.wait_for(lambda ledger: not ledger.open, timeout=PATIENCE).requests
    found = calls()
    assert (found["ok"], found["aborted"]) == (1, 1)
    # On a busy machine there can be one more hedge that is cancelled.
    assert found["cancelled"] >= 1
    assert sum(found.values()) == requests


def test_the_error_that_fails_a_bundle_is_counted() -> None:
    """A permission that is missing shows in the API's error rate, too."""
    with serving(Reply(status=grpc.StatusCode.PERMISSION_DENIED)):
        write_fn = make_fn(UNHURRIED)
        write_fn.setup()
        with pytest.raises(PublishError):
            run_bundle(write_fn, [b"x"])
        write_fn.teardown()
    assert calls() == {"permission_denied": 1}


def test_the_requests_that_find_a_bad_message_are_counted() -> None:
    """What splitting a refused batch costs can be read from the calls."""

    def script(record: RequestRecord) -> Reply | None:
        bad = any(message.data == b"bad" for message in record.messages)
        return Reply(status=grpc.StatusCode.INVALID_ARGUMENT) if bad else None

    with serving(script) as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, dead_letter=True)
        run_for_failed([b"1", b"2", b"bad", b"4"], transform)
        ledger = server.ledger()
    assert calls() == {"ok": ledger.answered, "invalid_argument": ledger.failed["INVALID_ARGUMENT"]}


@BOTH
def test_each_topic_has_its_own_calls(runner: str) -> None:
    """With a topic by element, a topic in trouble can be told from the others."""
    with serving() as server:
        server.create_topic(OTHER)
        transform = WriteToPubSubHedged(_topic_of, UNHURRIED, batch_settings=batches_of(1))
        run_pipeline([b"other", b"1", b"2"], transform, RUNNERS[runner])
    assert (calls(TOPIC), calls(OTHER)) == ({"ok": 2}, {"ok": 1})


def _topic_of(element: bytes) -> str:
    return OTHER if element == b"other" else TOPIC


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        (TOPIC, "pubsub:topic:p-test.out"),
        ("projects/example.com:p-test/topics/a.b", "pubsub:topic:`example.com:p-test`.`a.b`"),
    ],
)
def test_lineage_names_the_topic(topic: str, name: str) -> None:
    """The pipeline's graph of data ends at the topic, whatever characters its name has."""
    with serving(auto_create_topics=True):
        result = run_pipeline([b"x"], WriteToPubSubHedged(topic, UNHURRIED))
    assert Lineage.query(result.metrics(), Lineage.SINK) == {name}
    assert Lineage.query(result.metrics(), Lineage.SOURCE) == set()


@pytest.mark.parametrize("arguments", [{}, {"dead_letter": True}], ids=["plain", "dead letters"])
def test_lineage_is_reported_once(arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """However many bundles an instance has, the topic is told once: each report costs as much as a message."""
    reported: list[tuple[str, ...]] = []
    add = Lineage.add

    def noted(lineage: Lineage, system: str, *segments: str, **rest: Any) -> None:
        reported.append((system, *segments, rest["subtype"]))
        add(lineage, system, *segments, **rest)

    monkeypatch.setattr(Lineage, "add", noted)
    with serving() as server:
        write_fn = make_fn(UNHURRIED, **arguments)
        write_fn.setup()
        for _ in range(3):
            write_fn.start_bundle()
            write_fn.finish_bundle()
        write_fn.teardown()
        assert server.ledger().requests == 0
    assert reported == [("pubsub", "p-test", "out", "topic")]
