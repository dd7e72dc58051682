"""Messages that cannot be published come out, in the shape that each of the three ways fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
import grpc
import pytest
from apache_beam.transforms.error_handling import ErrorHandler

from beam_hedge import WriteToPubSubHedged
from beam_hedge.testing import Reply
from tests.beam.collecting import Collector, create_at, finish, make_pipeline
from tests.server.serving import TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from apache_beam.pvalue import PCollection

    from beam_hedge.testing import RequestRecord
    from tests.beam.collecting import Seen

BOTH = pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])

# Two minutes, each with good messages, one that our checks refuse and one that the service refuses.
TIMED = [
    (5, b"good 5"),
    (10, b""),
    (20, b"refused 20"),
    (30, b"good 30"),
    (65, b"good 65"),
    (70, b""),
    (80, b"refused 80"),
    (90, b"good 90"),
]
GOOD = [element for _, element in TIMED if element.startswith(b"good")]
EMPTY_REASON = "a message must have data or attributes; this one has neither"
SERVICE_REASON = "the schema says no"

# Element, reason, time and window of each dead letter.
EXPECTED = [
    (b"", EMPTY_REASON, 10, (0, 60)),
    (b"", EMPTY_REASON, 70, (60, 120)),
    (b"refused 20", SERVICE_REASON, 20, (0, 60)),
    (b"refused 80", SERVICE_REASON, 80, (60, 120)),
]


def refuse(record: RequestRecord) -> Reply | None:
    """Refuses each request that holds a message which says so."""
    if any(message.data.startswith(b"refused") for message in record.messages):
        return Reply(status=grpc.StatusCode.INVALID_ARGUMENT, details=SERVICE_REASON)
    return None


class Hand(beam.PTransform[Any, Any]):
    """What a user gives to Beam's error handler: takes all errors of a pipeline."""

    def __init__(self, collector: Collector) -> None:
        super().__init__()
        self._collector = collector

    def expand(self, errors: PCollection[Any]) -> PCollection[Any]:
        """Collects them."""
        self._collector.take(errors)
        return errors


def by_argument(elements: PCollection[Any], failed: Collector) -> None:
    """Asks for dead letters by `dead_letter=True`."""
    failed.take((elements | WriteToPubSubHedged(TOPIC, UNHURRIED, dead_letter=True)).failed)


def by_error_handler(elements: PCollection[Any], failed: Collector) -> None:
    """Asks for dead letters by `with_error_handler`."""
    with ErrorHandler(Hand(failed)) as handler:
        _ = elements | WriteToPubSubHedged(TOPIC, UNHURRIED).with_error_handler(handler)


def by_error_handling(elements: PCollection[Any], failed: Collector) -> None:
    """Asks for dead letters as Beam YAML does."""
    outputs = elements | WriteToPubSubHedged(TOPIC, UNHURRIED, error_handling={"output": "bad"})
    assert set(outputs) == {"good", "bad"}
    failed.take(outputs["bad"])


def publish(runner: str, way: Callable[[PCollection[Any], Collector], None]) -> tuple[list[bytes], list[Seen]]:
    """Publishes `TIMED`, and returns what was stored and what came out."""
    with serving(refuse) as server:
        pipeline, failed = make_pipeline(runner), Collector()
        way(create_at(pipeline, TIMED), failed)
        finish(pipeline)
        return sorted(message.data for message in server.messages(TOPIC)), failed.seen


@BOTH
def test_dead_letters_by_argument(runner: str) -> None:
    """`result.failed` has element, status and reason, with the element's time and window."""
    stored, failed = publish(runner, by_argument)
    assert stored == sorted(GOOD)
    found = [(each.value.element, each.value.reason, each.time, each.window) for each in failed]
    assert sorted(found) == EXPECTED
    assert {each.value.status for each in failed} == {"INVALID_ARGUMENT"}


@BOTH
def test_dead_letters_by_error_handler(runner: str) -> None:
    """Beam's error handler gets the records that it gets from any transform, with time and window."""
    stored, failed = publish(runner, by_error_handler)
    assert stored == sorted(GOOD)
    found = []
    for each in failed:
        element, (kind, text, lines) = each.value
        assert (kind, lines) == ("InvalidMessageError", [text])
        found.append((element, text.removeprefix("INVALID_ARGUMENT: "), each.time, each.window))
    assert sorted(found) == EXPECTED


@BOTH
def test_dead_letters_by_error_handling(runner: str) -> None:
    """Beam YAML gets the rows that it gets from any transform, in the output that it names."""
    stored, failed = publish(runner, by_error_handling)
    assert stored == sorted(GOOD)
    found = [(each.value.element, each.value.msg, each.time, each.window) for each in failed]
    assert sorted(found) == EXPECTED
    assert {frozenset(each.value._asdict()) for each in failed} == {frozenset({"element", "msg", "stack"})}
    assert all(isinstance(each.value.stack, str) for each in failed)


@pytest.mark.parametrize("way", [by_argument, by_error_handler, by_error_handling])
def test_without_bad_messages_nothing_comes_out(way: Callable[[PCollection[Any], Collector], None]) -> None:
    """Asking for dead letters costs no message and makes none up."""
    with serving(refuse) as server:
        pipeline, failed = make_pipeline(), Collector()
        way(create_at(pipeline, [(5, b"good"), (65, b"good, too")]), failed)
        finish(pipeline)
        assert sorted(message.data for message in server.messages(TOPIC)) == [b"good", b"good, too"]
    assert failed.seen == []


def test_dead_letters_of_many_threads_are_all_there() -> None:
    """Bundles that run at once keep their dead letters apart, and none is lost."""
    elements = [b"refused %d" % number if number % 10 == 0 else b"good %d" % number for number in range(200)]
    with serving(refuse) as server:
        pipeline, failed = make_pipeline("threads"), Collector()
        source = pipeline | beam.Create(elements) | beam.Reshuffle()
        failed.take((source | WriteToPubSubHedged(TOPIC, UNHURRIED, dead_letter=True)).failed)
        finish(pipeline)
        stored = sorted(message.data for message in server.messages(TOPIC))
    assert stored == sorted(element for element in elements if element.startswith(b"good"))
    assert sorted(letter.element for letter in failed.values) == sorted(set(elements) - set(stored))


def test_dead_letters_that_were_not_asked_for_are_refused() -> None:
    """A pipeline that reads dead letters and forgot to ask for them fails when it is built."""
    result = beam.Pipeline() | beam.Create([]) | WriteToPubSubHedged(TOPIC)
    with pytest.raises(ValueError, match="dead_letter=True"):
        _ = result.failed
