"""CPU that a message costs in the write stage of a DirectRunner pipeline: this sink, and Beam's own.

The source is fused with the sink, batches are the default, the server answers at once and runs in a process
of its own. What the same pipeline costs without a sink is subtracted. Run it with `python -m
benchmarks.write_cost`.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage

from beam_hedge import WriteToPubSubHedged
from benchmarks.server import served_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from apache_beam.pvalue import PCollection

_DATA = b"x" * 1024
_MESSAGE = PubsubMessage(_DATA, {f"attribute{number}": f"value {number}" for number in range(5)})


@dataclass(frozen=True)
class Case:
    """One way to write, and what the same pipeline costs without the write step."""

    element: Any
    sink: Callable[[PCollection[Any]], object]
    count: int
    base: Callable[[PCollection[Any]], object]


def _nothing(elements: PCollection[Any]) -> object:
    return elements | "Nothing" >> beam.Map(lambda _element: None)


def _run(element: object, write: Callable[[PCollection[Any]], object], count: int) -> tuple[float, float]:
    """Returns the seconds of CPU of this process and of wall time that a pipeline takes."""
    pipeline = beam.Pipeline(runner="FnApiRunner")
    repeat = beam.FlatMap(lambda number: itertools.repeat(element, number))
    write(pipeline | beam.Create([count], reshuffle=False) | repeat.with_output_types(type(element)))
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    pipeline.run().wait_until_finish()
    after, end = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, end - start


def _cases(topic: str, messages: int) -> dict[str, Case]:
    full = WriteToPubSubHedged(
        topic, with_attributes=True, id_label="id", timestamp_attribute="time", dead_letter=True
    )
    # What stands behind the reshuffle that gives ids: the reshuffle's own cost is the runner's.
    write_step = beam.ParDo(full._write_fn())  # noqa: SLF001
    few = max(messages // 10, 1)
    return {
        "bytes": Case(_DATA, WriteToPubSubHedged(topic).__ror__, messages, _nothing),
        "bytes, settings=None": Case(_DATA, WriteToPubSubHedged(topic, None).__ror__, messages, _nothing),
        "5 attributes": Case(
            _MESSAGE, WriteToPubSubHedged(topic, with_attributes=True).__ror__, messages, _nothing
        ),
        "5 attributes, id, timestamp, dead letters": Case(
            ("0123456789abcdef" * 2, _MESSAGE), write_step.__ror__, messages, _nothing
        ),
        "bytes, beam.io.WriteToPubSub": Case(_DATA, beam.io.WriteToPubSub(topic).__ror__, few, _nothing),
        "5 attributes, beam.io.WriteToPubSub": Case(
            _MESSAGE, beam.io.WriteToPubSub(topic, with_attributes=True).__ror__, few, _nothing
        ),
    }


def main() -> None:
    """Prints microseconds of CPU a message, the median, least and most of the runs, and messages a second."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--messages", type=int, default=200_000, help="messages of a run of this sink")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    costs: dict[str, list[float]] = {}
    rates: dict[str, list[float]] = {}
    with served_topic() as topic:
        for _ in range(args.runs):
            for name, case in _cases(topic, args.messages).items():
                cpu, wall = _run(case.element, case.sink, case.count)
                base, _wall = _run(case.element, case.base, case.count)
                costs.setdefault(name, []).append((cpu - base) / case.count * 1e6)
                rates.setdefault(name, []).append(case.count / wall)
    print("| 1 KiB messages | CPU us/message | least | most | messages/s |\n|---|---|---|---|---|")
    for name, values in costs.items():
        median, rate = statistics.median(values), statistics.median(rates[name])
        print(f"| {name} | {median:.2f} | {min(values):.2f} | {max(values):.2f} | {rate:,.0f} |")


if __name__ == "__main__":
    main()
