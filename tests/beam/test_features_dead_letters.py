"""Dead letters: the three ways to ask for them, and what each of them gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
import grpc
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms import window
from apache_beam.transforms.error_handling import ErrorHandler

from beam_hedge import WriteToPubSubHedged
from beam_hedge.testing import Reply
from tests.beam.pipelines import batches_of, counters
from tests.server.serving import TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    from beam_hedge.testing import LocalPubSub, RequestRecord

BOTH = pytest.mark.parametrize("runner", ["FnApiRunner", "BundleBasedDirectRunner"])
EMPTY = "a message must have data or attributes; this one has neither"
REFUSAL = Reply(status=grpc.StatusCode.INVALID_ARGUMENT, details="not so")


def refuse_bad(record: RequestRecord) -> Reply | None:
    """Refuses each request that holds a bad message."""
    return REFUSAL if any(message.data == b"bad" for message in record.messages) else None


def stored(server: LocalPubSub) -> list[bytes]:
    """Returns what was published, sorted."""
    return sorted(message.data for message in server.messages(TOPIC))


def describe(
    failed: Any, time: Any = beam.DoFn.TimestampParam, span: Any = beam.DoFn.WindowParam
) -> tuple[Any, ...]:
    """Turns a dead letter into all that it says, its timestamp and its window."""
    return failed.element, failed.status, failed.reason, float(time), float(span.start), float(span.end)


@BOTH
@pytest.mark.parametrize(
    "labels", [{}, {"id_label": "id", "timestamp_attribute": "ts"}], ids=["plain", "labels"]
)
def test_a_dead_letter_has_its_elements_time_and_window(runner: str, labels: dict[str, Any]) -> None:
    """Dead letters can be counted and stored by window like the elements, whoever refused them."""
    timed = [(b"good", 5), (b"", 10), (b"bad", 20), (b"fine", 65), (b"", 70), (b"bad", 80)]
    with serving(refuse_bad) as server:
        with beam.Pipeline(runner=runner) as pipeline:
            result = (
                pipeline
                | beam.Create(timed, reshuffle=False)
                | beam.MapTuple(window.TimestampedValue)
                | beam.WindowInto(window.FixedWindows(60))
                | WriteToPubSubHedged(TOPIC, UNHURRIED, dead_letter=True, **labels)
            )
            assert_that(
                result.failed | beam.Map(describe) | "Global" >> beam.WindowInto(window.GlobalWindows()),
                equal_to(
                    [
                        (b"", "INVALID_ARGUMENT", EMPTY, 10, 0, 60),
                        (b"bad", "INVALID_ARGUMENT", "not so", 20, 0, 60),
                        (b"", "INVALID_ARGUMENT", EMPTY, 70, 60, 120),
                        (b"bad", "INVALID_ARGUMENT", "not so", 80, 60, 120),
                    ]
                ),
            )
        assert stored(server) == [b"fine", b"good"]


@BOTH
def test_an_error_handler_gets_beams_own_records(runner: str) -> None:
    """One handler can take the failures of a whole pipeline, ours among Beam's."""
    with serving() as server:
        with beam.Pipeline(runner=runner) as pipeline:
            with ErrorHandler(beam.Map(lambda record: record)) as handler:
                numbers = (
                    pipeline
                    | beam.Create([2, 0])
                    | beam.Map(lambda n: b"%d" % (4 // n)).with_error_handler(handler)
                )
                elements = (numbers, pipeline | "Empty" >> beam.Create([b""])) | "Both" >> beam.Flatten()
                _ = elements | WriteToPubSubHedged(TOPIC, UNHURRIED).with_error_handler(handler)
            kinds = handler.output() | beam.MapTuple(lambda element, error: (element, error[0], error[1]))

            def matches(records: list[tuple[Any, Any, str]]) -> None:
                [theirs, ours] = sorted(records, key=lambda record: record[0] == b"")
                assert (theirs[0], theirs[1]) == (0, ZeroDivisionError)
                assert ours == (b"", "InvalidMessageError", f"INVALID_ARGUMENT: {EMPTY}")

            assert_that(kinds, matches)
        assert stored(server) == [b"2"]


@BOTH
def test_error_handling_gives_named_outputs(runner: str) -> None:
    """Beam YAML's way gives a good output and one of rows under the name that was asked for."""
    with serving() as server:
        with beam.Pipeline(runner=runner) as pipeline:
            outputs = (
                pipeline
                | beam.Create([b"x", b""])
                | WriteToPubSubHedged(TOPIC, UNHURRIED, error_handling={"output": "bad"})
            )
            assert sorted(outputs) == ["bad", "good"]
            rows = outputs["bad"] | beam.Map(lambda row: (row.element, row.msg, row.stack))
            assert_that(rows, equal_to([(b"", EMPTY, "INVALID_ARGUMENT")]))
        assert stored(server) == [b"x"]


def test_one_bad_message_costs_few_requests_and_no_other_message() -> None:
    """The service refuses whole batches; the culprit is found by halving, and the rest is published once."""
    elements = [b"%d" % number for number in range(9)] + [b"bad"]
    pipeline = beam.Pipeline(runner="FnApiRunner")
    with serving(refuse_bad) as server:
        result = (
            pipeline
            | beam.Create(elements, reshuffle=False)
            | WriteToPubSubHedged(TOPIC, UNHURRIED, dead_letter=True, batch_settings=batches_of(1000))
        )
        failed = result.failed | beam.Map(lambda failed: failed.element)
        assert_that(failed, equal_to([b"bad"]))
        finished = pipeline.run()
        finished.wait_until_finish()
        assert stored(server) == sorted(elements[:-1])
        assert server.ledger().requests <= 11
    found = counters(finished)
    assert (found["messages_published"], found["messages_failed"]) == (9, 1)


def publish_together(elements: list[bytes], **arguments: Any) -> None:
    """Publishes elements as one batch."""
    pipeline = beam.Pipeline(runner="FnApiRunner")
    _ = (
        pipeline
        | beam.Create(elements, reshuffle=False)
        | WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=batches_of(1000), **arguments)
    )
    pipeline.run()


def test_without_dead_letters_a_bad_message_fails_the_bundle() -> None:
    """The default drops nothing in silence, and does not try again what cannot succeed."""
    with serving(refuse_bad) as server:
        with pytest.raises(Exception, match="INVALID_ARGUMENT after 1 attempt"):
            publish_together([b"good", b"bad"])
        assert server.ledger().requests == 1


@pytest.mark.parametrize("status", [grpc.StatusCode.NOT_FOUND, grpc.StatusCode.PERMISSION_DENIED])
def test_what_is_nobodys_fault_is_no_dead_letter(status: grpc.StatusCode) -> None:
    """A missing topic or permission fails the bundle: good messages do not pile up among the dead letters."""
    with serving(Reply(status=status)) as server:
        with pytest.raises(Exception, match=status.name):
            publish_together([b"1", b"2"], dead_letter=True)
        assert server.ledger().requests == 1


def test_a_message_with_attributes_comes_out_as_it_came_in() -> None:
    """A dead letter can be mended and published again: data, attributes and all."""
    bad = PubsubMessage(b"x", {"n": 1})
    with serving(), beam.Pipeline(runner="FnApiRunner") as pipeline:
        result = (
            pipeline
            | beam.Create([bad])
            | WriteToPubSubHedged(
                TOPIC,
                UNHURRIED,
                with_attributes=True,
                id_label="id",
                timestamp_attribute="ts",
                dead_letter=True,
            )
        )
        parts = result.failed | beam.Map(lambda failed: (failed.element.data, failed.element.attributes))
        assert_that(parts, equal_to([(b"x", {"n": 1})]))
