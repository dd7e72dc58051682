"""Pipelines of this process whose outputs a test looks at when they have ended."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import FixedWindows, TimestampedValue

from tests.beam.pipelines import RUNNERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apache_beam.pvalue import PCollection
    from apache_beam.runners.runner import PipelineResult

    from beam_hedge import WriteToPubSubHedged

# A pickled step cannot hold the list itself: the runner would fill a copy.
_lists: dict[int, list[Seen]] = {}
_numbers = itertools.count()


@dataclass(frozen=True)
class Seen:
    """What came out of a pipeline.

    Attributes:
        value: The element.
        time: Its timestamp, in seconds.
        window: Start and end of the window that it is in, in seconds.
    """

    value: Any
    time: float
    window: tuple[float, float]


class Collector:
    """A list that pipelines of this process fill.

    Attributes:
        seen: What has arrived so far.
    """

    def __init__(self) -> None:
        self._number = next(_numbers)
        self.seen = _lists[self._number] = []

    @property
    def values(self) -> list[Any]:
        """The elements alone."""
        return [each.value for each in self.seen]

    def take(self, elements: PCollection[Any]) -> None:
        """Adds the step that fills the list."""
        step = beam.ParDo(_Collect(self._number)).with_output_types(None)
        _ = elements | f"Collect{self._number}" >> step


class _Collect(beam.DoFn):
    def __init__(self, number: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._number = number

    def process(
        self, element: Any, time: Any = beam.DoFn.TimestampParam, window: Any = beam.DoFn.WindowParam
    ) -> Any:
        seen = Seen(element, float(time), (float(window.start), float(window.end)))
        _lists[self._number].append(seen)


def create(pipeline: beam.Pipeline, elements: Iterable[Any]) -> PCollection[Any]:
    """Makes the elements, in one bundle and in order."""
    created: PCollection[Any] = pipeline | beam.Create(list(elements), reshuffle=False)
    return created


def create_at(
    pipeline: beam.Pipeline, timed: Iterable[tuple[float, Any]], size: float = 60
) -> PCollection[Any]:
    """Makes elements with timestamps, in one bundle and in order, and puts them into fixed windows."""
    values = create(pipeline, timed) | beam.MapTuple(lambda time, value: TimestampedValue(value, time))
    windowed: PCollection[Any] = values | beam.WindowInto(FixedWindows(size))
    return windowed


def make_pipeline(runner: str = "fn_api") -> beam.Pipeline:
    """Makes a pipeline for one of `RUNNERS`."""
    return beam.Pipeline(options=PipelineOptions(RUNNERS[runner]))


def finish(pipeline: beam.Pipeline) -> PipelineResult:
    """Runs a pipeline to its end, and returns its result."""
    result = pipeline.run()
    result.wait_until_finish()
    return result


def run_for_failed(
    elements: Iterable[Any], transform: WriteToPubSubHedged, runner: str = "fn_api"
) -> tuple[PipelineResult, list[Any]]:
    """Publishes elements, and returns the pipeline's result and its dead letters."""
    pipeline, failed = make_pipeline(runner), Collector()
    failed.take((create(pipeline, elements) | transform).failed)
    return finish(pipeline), failed.values
