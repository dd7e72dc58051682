"""CPU that a message costs in the write stage of a DirectRunner pipeline: this sink, and Beam's own.

The source is fused with the sink, batches are the default, the server answers at once and runs in a process
of its own. What the same pipeline costs without a sink is subtracted. Run it with `python -m
benchmarks.write_cost`.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from typing import TYPE_CHECKING

import apache_beam as beam

from beam_hedge import HedgingSettings, WriteToPubSubHedged
from benchmarks.server import served_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MESSAGE = b"x" * 1024


def _messages(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield _MESSAGE


def _run(sink: Callable[[beam.PCollection[bytes]], object], count: int) -> tuple[float, float]:
    """Returns the seconds of CPU of this process and of wall time that a pipeline takes."""
    pipeline = beam.Pipeline(runner="FnApiRunner")
    messages = (
        pipeline | beam.Create([count], reshuffle=False) | beam.FlatMap(_messages).with_output_types(bytes)
    )
    sink(messages)
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    pipeline.run().wait_until_finish()
    after, end = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, end - start


def main() -> None:
    """Prints microseconds of CPU a message, the median, least and most of the runs, and messages a second."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--messages", type=int, default=200_000, help="messages of a run of this sink")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    with served_topic() as topic:
        sinks: dict[str, tuple[Callable[[beam.PCollection[bytes]], object], int]] = {
            "no sink": (lambda messages: messages | beam.Map(lambda _: None), args.messages),
            "WriteToPubSubHedged": (
                lambda m: m | WriteToPubSubHedged(topic, HedgingSettings()),
                args.messages,
            ),
            "WriteToPubSubHedged, settings=None": (
                lambda m: m | WriteToPubSubHedged(topic, None),
                args.messages,
            ),
            "beam.io.WriteToPubSub": (
                lambda m: m | beam.io.WriteToPubSub(topic),
                max(args.messages // 10, 1),
            ),
        }
        costs: dict[str, list[float]] = {name: [] for name in sinks}
        rates: dict[str, list[float]] = {name: [] for name in sinks}
        for _ in range(args.runs):
            for name, (sink, count) in sinks.items():
                cpu, wall = _run(sink, count)
                base, _wall = _run(sinks["no sink"][0], count)
                costs[name].append((cpu - base) / count * 1e6)
                rates[name].append(count / wall)
    print("| sink | CPU us/message | least | most | messages/s |\n|---|---|---|---|---|")
    for name, values in costs.items():
        median, rate = statistics.median(values), statistics.median(rates[name])
        print(f"| {name} | {median:.2f} | {min(values):.2f} | {max(values):.2f} | {rate:,.0f} |")


if __name__ == "__main__":
    main()
