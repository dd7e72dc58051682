"""Sinks in a DirectRunner pipeline: a source that is fused with the sink, and nothing in between."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage

from beam_hedge import HedgingSettings, WriteToPubSubHedged
from benchmarks.server import TOPIC
from benchmarks.usage import Published, measured

if TYPE_CHECKING:
    from collections.abc import Callable

    from apache_beam.pvalue import PCollection

    from benchmarks.shapes import Shape
    from benchmarks.usage import Usage

    Write = Callable[[PCollection[Any]], object]


class _Drop(beam.DoFn):
    """A sink that does nothing."""

    def process(self, element: object) -> None:
        """Drops an element."""


@dataclass(frozen=True)
class Stage:
    """What a pipeline took, and what its write stage did.

    Attributes:
        whole: Of the whole pipeline; its messages a second are those of users.
        write: The same, without the CPU of a pipeline that has the same source and drops everything.
    """

    whole: Published
    write: Published


def write_with(sink: str, shape: Shape, count: int) -> Stage:
    """Runs a pipeline with a sink, and the same pipeline without one.

    Args:
        sink: "beam" for `beam.io.WriteToPubSub`, "hedged" for `WriteToPubSubHedged`, "plain" for the latter
            with `settings=None`, "full" with an attribute for event times and with dead letters.
        shape: What to publish.
        count: How many messages.
    """
    element, write = _sink(sink, shape)
    used, empty = run(element, write, count), run(element, _drop, count)
    whole = Published(count, used.cpu, used.wall)
    return Stage(whole, Published(count, used.cpu - empty.cpu, used.wall))


def run(element: object, write: Write, count: int) -> Usage:
    """Returns what a pipeline takes that repeats an element and writes it."""
    pipeline = beam.Pipeline(runner="FnApiRunner")
    repeat = beam.FlatMap(lambda number: itertools.repeat(element, number))
    write(pipeline | beam.Create([count], reshuffle=False) | repeat.with_output_types(type(element)))
    with measured() as usage:
        pipeline.run().wait_until_finish()
    return usage


def _drop(elements: PCollection[Any]) -> object:
    return elements | "Drop" >> beam.ParDo(_Drop())  # type: ignore[no-untyped-call]  # Beam's has no annotations


def _sink(sink: str, shape: Shape) -> tuple[Any, Write]:
    with_attributes = bool(shape.attributes)
    element: Any = shape.message if with_attributes else shape.data
    if sink == "beam":
        return element, beam.io.WriteToPubSub(TOPIC, with_attributes=with_attributes).__ror__
    id_label = "id" if shape.has_id else None
    transform = WriteToPubSubHedged(
        TOPIC,
        None if sink == "plain" else HedgingSettings(),
        with_attributes=with_attributes,
        id_label=id_label,
        timestamp_attribute="time" if sink == "full" else None,
        dead_letter=sink == "full",
    )
    if id_label is None:
        return element, transform.__ror__
    # What stands behind the reshuffle that keeps ids: the reshuffle's own cost is the runner's.
    pair = (shape.id, PubsubMessage(shape.data, shape.own_attributes))
    return pair, beam.ParDo(transform._write_fn()).__ror__  # noqa: SLF001
