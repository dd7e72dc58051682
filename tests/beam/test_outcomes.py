"""`with_outcomes=True`: what became of each batch, in the windows of its elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that
from apache_beam.transforms import window
from google.cloud.pubsub_v1.types import LimitExceededBehavior, PublishFlowControl

from beam_hedge import WriteToPubSubHedged
from beam_hedge.testing import NEVER
from tests.beam.pipelines import batches_of
from tests.server.serving import EAGER, TOPIC, UNHURRIED, by_attempt, serving

if TYPE_CHECKING:
    from beam_hedge import PublishOutcome

Row = tuple[int, float, tuple[float, float]]


class Describe(beam.DoFn):
    """Turns an outcome into its number of messages, its timestamp and its window."""

    def process(  # noqa: D102 - the class says it
        self,
        outcome: PublishOutcome,
        timestamp: Any = beam.DoFn.TimestampParam,
        in_window: Any = beam.DoFn.WindowParam,
    ) -> Any:
        yield outcome.messages, float(timestamp), (float(in_window.start), float(in_window.end))


def check(expected: list[Row]) -> Any:
    """Makes a matcher of rows, whatever their order."""

    def matches(actual: list[Row]) -> None:
        assert sorted(actual) == sorted(expected), f"{sorted(actual)} instead of {sorted(expected)}"

    return matches


def publish_at(
    pipeline: beam.Pipeline, times: list[float], windowing: window.WindowFn, **arguments: Any
) -> Any:
    """Publishes one element for each time, and returns the outcomes."""
    return (
        pipeline
        | beam.Create(times, reshuffle=False)
        | beam.Map(lambda time: window.TimestampedValue(b"%d" % time, time))
        | beam.WindowInto(windowing)
        | WriteToPubSubHedged(TOPIC, with_outcomes=True, **arguments)
    ).published


BOTH = pytest.mark.parametrize("runner", ["FnApiRunner", "BundleBasedDirectRunner"])


@BOTH
def test_an_outcome_has_the_window_and_time_of_its_batch(runner: str) -> None:
    """Outcomes can be counted by window like the elements; a batch never spans two fixed windows."""
    with serving() as server:
        with beam.Pipeline(runner=runner) as pipeline:
            outcomes = publish_at(
                pipeline,
                [10, 20, 70, 75, 80, 130],
                window.FixedWindows(60),
                settings=UNHURRIED,
                batch_settings=batches_of(1000),
            )
            rows = outcomes | beam.ParDo(Describe())  # type: ignore[no-untyped-call]
            assert_that(
                rows | "Global" >> beam.WindowInto(window.GlobalWindows()),
                check([(2, 20, (0, 60)), (3, 80, (60, 120)), (1, 130, (120, 180))]),
            )
        assert server.ledger().requests == 3


@BOTH
def test_an_element_in_several_sliding_windows_is_published_once(runner: str) -> None:
    """Windows that overlap do not multiply messages; the outcome is in all of them."""
    with serving() as server:
        with beam.Pipeline(runner=runner) as pipeline:
            outcomes = publish_at(
                pipeline,
                [10, 12],
                window.SlidingWindows(size=60, period=20),
                settings=UNHURRIED,
                batch_settings=batches_of(1000),
            )
            rows = outcomes | beam.ParDo(Describe())  # type: ignore[no-untyped-call]
            assert_that(
                rows | "Global" >> beam.WindowInto(window.GlobalWindows()),
                check([(2, 12, (0, 60)), (2, 12, (-20, 40)), (2, 12, (-40, 20))]),
            )
        assert sorted(message.data for message in server.messages(TOPIC)) == [b"10", b"12"]


@BOTH
def test_outcomes_that_come_while_the_bundle_goes_on_are_not_multiplied(runner: str) -> None:
    """An outcome that is output before the end of its bundle is once in each of its windows, too."""
    one_at_a_time = PublishFlowControl(1, 10**6, LimitExceededBehavior.BLOCK)
    windows = [(-40, 20), (-20, 40), (0, 60)]
    with serving(), beam.Pipeline(runner=runner) as pipeline:
        outcomes = publish_at(
            pipeline,
            [10, 12, 14],
            window.SlidingWindows(size=60, period=20),
            settings=UNHURRIED,
            batch_settings=batches_of(1),
            flow_control=one_at_a_time,
        )
        rows = outcomes | beam.ParDo(Describe())  # type: ignore[no-untyped-call]
        assert_that(
            rows | "Global" >> beam.WindowInto(window.GlobalWindows()),
            check([(1, time, each) for time in (10, 12, 14) for each in windows]),
        )


@BOTH
def test_a_refused_element_in_sliding_windows_is_output_once_in_each(runner: str) -> None:
    """A dead letter is in the windows of its element, and not several times in any."""

    class DescribeFailed(beam.DoFn):
        def process(self, failed: Any, in_window: Any = beam.DoFn.WindowParam) -> Any:
            yield bytes(failed.element), float(in_window.start)

    with serving() as server:
        with beam.Pipeline(runner=runner) as pipeline:
            failed = (
                pipeline
                | beam.Create([(10, b"good"), (12, b""), (14, b"good, too")], reshuffle=False)
                | beam.Map(lambda pair: window.TimestampedValue(pair[1], pair[0]))
                | beam.WindowInto(window.SlidingWindows(size=60, period=20))
                | WriteToPubSubHedged(TOPIC, UNHURRIED, dead_letter=True)
            ).failed
            rows = failed | beam.ParDo(DescribeFailed())  # type: ignore[no-untyped-call]
            assert_that(
                rows | "Global" >> beam.WindowInto(window.GlobalWindows()),
                check([(b"", -40), (b"", -20), (b"", 0)]),  # type: ignore[list-item]
            )
        assert sorted(message.data for message in server.messages(TOPIC)) == [b"good", b"good, too"]


@BOTH
def test_without_outcomes_sliding_windows_do_not_multiply_messages_either(runner: str) -> None:
    """An element is published once, in however many windows it is."""
    with serving() as server:
        with beam.Pipeline(runner=runner) as pipeline:
            _ = (
                pipeline
                | beam.Create([10, 12, 100])
                | beam.Map(lambda time: window.TimestampedValue(b"%d" % time, time))
                | beam.WindowInto(window.SlidingWindows(size=60, period=20))
                | WriteToPubSubHedged(TOPIC, UNHURRIED)
            )
        assert sorted(message.data for message in server.messages(TOPIC)) == [b"10", b"100", b"12"]


@BOTH
def test_outcomes_tell_of_hedges(runner: str) -> None:
    """A later step sees which batches were saved by a hedge."""
    with serving(by_attempt(NEVER, None)), beam.Pipeline(runner=runner) as pipeline:
        outcomes = publish_at(
            pipeline, [1, 2, 3], window.GlobalWindows(), settings=EAGER, batch_settings=batches_of(1)
        )

        def tell(outcome: PublishOutcome) -> tuple[bool, bool, int]:
            return outcome.winner >= 1, outcome.latency >= 0.1, len(outcome.message_ids)

        assert_that(outcomes | beam.Map(tell), check([(True, True, 1)] * 3))  # type: ignore[list-item]


def test_outcomes_that_were_not_asked_for_are_refused() -> None:
    """A pipeline that needs outcomes and forgot to ask for them fails when it is built."""
    result = beam.Pipeline() | beam.Create([]) | WriteToPubSubHedged(TOPIC)
    with pytest.raises(ValueError, match="with_outcomes=True"):
        _ = result.published
