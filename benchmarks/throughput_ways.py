"""The ways to publish whose throughput is compared: each in its own process, in turn, several times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.clients import publish_with
from benchmarks.floors import publish_bytes, publish_protobufs
from benchmarks.shapes import Shape
from benchmarks.spread import spread
from benchmarks.write_stage import Stage, write_with

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Executor

    from benchmarks.usage import Published

PROTOBUFS, BYTES = "raw gRPC, protobufs", "raw gRPC, bytes made beforehand"
BEAM, SINK, PLAIN = "beam.io.WriteToPubSub", "WriteToPubSubHedged", "WriteToPubSubHedged, settings=None"
FULL = "WriteToPubSubHedged, id, timestamp, dead letters"
CLIENT, PUBLISH, BATCHES = "PublisherClient", "HedgingPublisher.publish", "HedgingPublisher.publish_batch"
SINKS = {BEAM: "beam", SINK: "hedged", PLAIN: "plain", FULL: "full"}
PUBLISHERS = {CLIENT: "client", PUBLISH: "publish", BATCHES: "publish_batch"}
FLOORS = {PROTOBUFS: publish_protobufs, BYTES: publish_bytes}
# Beam's sink gets a part of the messages: it would take all the time.
_BEAM_SHARE = 10
# What is looked at first, and what the sentences on the pages are about.
USUAL = Shape(1024)


@dataclass(frozen=True)
class Way:
    """One way to publish, as a line of a table.

    Attributes:
        name: What it is called.
        threads: How many publish at once; 0 where there is nothing to choose.
    """

    name: str
    threads: int = 0


# What each run took: a `Stage` in a pipeline, else a `Published`.
Runs = dict[Way, list[Any]]
Found = dict[Shape, Runs]


@dataclass(frozen=True)
class Options:
    """How much is measured.

    Attributes:
        runs: Of each line, in turn with the others.
        seconds: Of a run without Beam.
        data: The most bytes of data of a pipeline's run.
        messages: The most messages of a pipeline's run.
        threads: Of publishers without Beam.
    """

    runs: int
    seconds: float
    data: int
    messages: int
    threads: Sequence[int]

    def count(self, sink: str, shape: Shape) -> int:
        """Returns how many messages a pipeline publishes."""
        count = min(self.messages, self.data // shape.size)
        return max(count // _BEAM_SHARE if sink == BEAM else count, 1)


def ways(shape: Shape, threads: Iterable[int]) -> list[Way]:
    """Returns how messages of a shape are published, in the order of the tables."""
    # Beam's sink refuses id_label in batch pipelines, and there is no such argument without Beam. What ids are
    # for comes with them in the full form.
    sinks = [name for name in SINKS if name != (BEAM if shape.has_id else FULL)]
    publishers = [] if shape.has_id else [Way(name, each) for name in PUBLISHERS for each in threads]
    return [*map(Way, FLOORS), *map(Way, sinks), *publishers]


def measure(shape: Shape, options: Options, processes: dict[str, Executor]) -> Runs:
    """Publishes in all ways in turn, several times over."""
    found: Runs = {way: [] for way in ways(shape, options.threads)}
    for _ in range(options.runs):
        for way, runs in found.items():
            runs.append(processes[way.name].submit(*_work(way, shape, options)).result())
    print(f"  {shape}", flush=True)
    return found


def _work(way: Way, shape: Shape, options: Options) -> tuple[Any, ...]:
    """Returns what a process is to call, and the arguments."""
    if way.name in FLOORS:
        return FLOORS[way.name], shape, options.seconds
    if way.name in SINKS:
        return write_with, SINKS[way.name], shape, options.count(way.name, shape)
    return publish_with, PUBLISHERS[way.name], shape, way.threads, options.seconds


def rows(found: Found, kind: type, peer: str) -> list[dict[str, Any]]:
    """Returns the lines of one table.

    Args:
        found: What was measured, by shape and way.
        kind: `Stage` for the table of pipelines, `Published` for the one of publishers.
        peer: What the messages a second are compared with, on as many threads, on its fewest for floors, and
            with the same message less its id where it has none.
    """
    lines: list[dict[str, Any]] = []
    peers: dict[tuple[Shape, int], float] = {}
    for shape, by_way in found.items():
        chosen = {way: runs for way, runs in by_way.items() if way.name in FLOORS or type(runs[0]) is kind}
        if all(way.name in FLOORS for way in chosen):
            continue
        rates = {way: spread("rate", [_whole(run).rate for run in runs]) for way, runs in chosen.items()}
        costs = {way: spread("cpu_us", [_own(run).cpu_us for run in runs]) for way, runs in chosen.items()}
        peers |= {(shape, way.threads): rates[way]["rate"] for way in chosen if way.name == peer}
        known = {
            threads: rate for (each, threads), rate in peers.items() if each == replace(shape, has_id=False)
        }
        for way in chosen:
            other = known.get(way.threads) or known[min(known)]
            line = {
                "shape": str(shape),
                "threads": way.threads or "",
                "name": way.name,
                **rates[way],
                **costs[way],
            }
            line["times"] = rates[way]["rate"] / other
            line["to_floor"] = costs[way]["cpu_us"] / costs[Way(PROTOBUFS)]["cpu_us"]
            lines.append(line)
    return lines


def _whole(run: Stage | Published) -> Published:
    return run.whole if isinstance(run, Stage) else run


def _own(run: Stage | Published) -> Published:
    return run.write if isinstance(run, Stage) else run


def warm_up(options: Options, processes: dict[str, Executor]) -> None:
    """Pays for imports and the first pipeline, in all processes at once."""
    short = replace(options, seconds=0.01, messages=1000)
    shapes = (replace(USUAL, attributes=5, has_id=True), USUAL)
    first = {way.name: _work(way, shape, short) for shape in shapes for way in ways(shape, options.threads)}
    for waiting in [processes[name].submit(*work) for name, work in first.items()]:
        waiting.result()
