"""Messages a second and CPU a message: this library, Beam's sink, google-cloud-pubsub, and what gRPC allows.

Two tables: sinks in a pipeline, and publishers without Beam on several threads. Both hold two floors: raw gRPC
with a protobuf for each message, and raw gRPC with bytes that were made beforehand. Ways to publish alternate,
each in a process of its own; the server answers at once and runs in its own, too. Run it with `python -m
benchmarks.throughput`, which takes half an hour, or with `--quick`.
"""

from __future__ import annotations

import argparse
import contextlib
from typing import TYPE_CHECKING, Any

from benchmarks.amounts import Amount, parse
from benchmarks.report import Column, Report
from benchmarks.server import serving
from benchmarks.shapes import SHAPES
from benchmarks.spread import columns
from benchmarks.throughput_plots import draw_clients, draw_pipelines
from benchmarks.throughput_ways import (
    BEAM,
    BYTES,
    CLIENT,
    FLOORS,
    PROTOBUFS,
    PUBLISH,
    PUBLISHERS,
    SINK,
    SINKS,
    USUAL,
    Options,
    measure,
    rows,
    warm_up,
)
from benchmarks.usage import Published, own_process
from benchmarks.write_stage import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

_AMOUNTS = (
    Amount("runs", 5, 1, "runs of each line, in turn with the others"),
    Amount("seconds", 1.0, 0.2, "seconds of a run without Beam"),
    Amount("messages", 200_000, 20_000, "the most messages of a pipeline"),
)
# Large messages are fewer, so that a pipeline publishes at most this many bytes for each message asked for.
_MEAN_SIZE = 2560
_ENOUGH = 3.0
_MEASURED = (
    *columns("rate", "messages/s", ",.0f"),
    *columns("cpu_us", "CPU us a message", ".2f"),
)
_RATIOS = (
    Column("times", "times {}'s messages/s", ".1f"),
    Column("to_floor", "CPU to protobuf floor's", ".2f"),
)


def server_check(lines: Sequence[dict[str, Any]]) -> str:
    """Returns a sentence that says whether the server can have been what limited the sink."""
    rates = {line["name"]: line["rate"] for line in lines if line["shape"] == str(USUAL)}
    times = rates[BYTES] / rates[SINK]
    verdict = (
        "so the server is not what limits the sink" if times >= _ENOUGH else "so the server may limit the sink"
    )
    return (
        f"Check of the server, {USUAL}: bytes made beforehand reach {times:.1f} times the messages/s of the "
        f"sink on the same server, {verdict} ({_ENOUGH:g} times are asked for)."
    )


def convoy_check(lines: Sequence[dict[str, Any]]) -> str:
    """Returns a sentence that compares the most threads on one publisher with the fewest."""
    rates = {
        line["threads"]: line["rate"]
        for line in lines
        if line["shape"] == str(USUAL) and line["name"] == PUBLISH
    }
    fewest, most = min(rates), max(rates)
    return (
        f"No convoy, {USUAL}: {most} threads on one `HedgingPublisher` reach "
        f"{rates[most] / rates[fewest]:.2f} times the messages/s of {fewest}."
    )


def _columns(peer: str, *first: Column) -> tuple[Column, ...]:
    ratios = (Column(each.key, each.heading.format(peer), each.form) for each in _RATIOS)
    return (Column("shape", "message"), *first, Column("name", "published with"), *_MEASURED, *ratios)


def main() -> None:
    """Measures, and writes two reports."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 4, 16])
    sizes = sorted({shape.size for shape in SHAPES})
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="*",
        choices=sizes,
        default=sizes,
        help="bytes of a message; 1,024 are always among them; default all",
    )
    args = parse(parser, _AMOUNTS)
    shapes = [shape for shape in SHAPES if shape.size in {USUAL.size, *args.sizes}]
    options = Options(args.runs, args.seconds, args.messages * _MEAN_SIZE, args.messages, args.threads)
    with serving(), contextlib.ExitStack() as stack:
        names = (*FLOORS, *SINKS, *PUBLISHERS)
        processes = {name: stack.enter_context(own_process()) for name in names}
        warm_up(options, processes)
        found = {shape: measure(shape, options, processes) for shape in shapes}
    _report_pipelines(rows(found, Stage, BEAM), options, args)
    _report_clients(rows(found, Published, CLIENT), options, args)


def _report_pipelines(lines: list[dict[str, Any]], options: Options, args: argparse.Namespace) -> None:
    text = (
        f"A source that repeats one message, fused with the sink, on the FnApiRunner; up to "
        f"{options.messages:,} messages a run, a tenth of that with Beam's sink. Medians of {options.runs} "
        "alternating runs. Messages/s are those of the whole pipeline; CPU is that of the process, less what "
        "the same pipeline takes with a sink that drops everything. Sinks have their defaults: batches of 100. "
        "With an id: the step behind the reshuffle that keeps ids, against Beam's sink without ids, because "
        f"that has none in batch pipelines.\n\n{server_check(lines)}"
    )
    report = Report("throughput_pipelines", "Sinks in a pipeline", text, _columns("Beam"), lines)
    report.write(draw_pipelines(lines, (BEAM, SINK, PROTOBUFS, BYTES)), args.out)


def _report_clients(lines: list[dict[str, Any]], options: Options, args: argparse.Namespace) -> None:
    text = (
        f"Threads share one publisher, publish batch after batch for {options.seconds:g} s and then wait for "
        f"all outcomes. Medians of {options.runs} alternating runs; CPU is that of the whole process. Both "
        "libraries let 10,000 messages or 100,000,000 bytes out and then wait; everything else is their "
        "default. The floors have one loop on one thread, and 100 requests out; they are compared with one "
        f"thread of the client.\n\n{convoy_check(lines)}"
    )
    table = _columns("PublisherClient", Column("threads", "threads"))
    report = Report("throughput_clients", "Publishers without Beam", text, table, lines)
    report.write(draw_clients(lines, (CLIENT, PUBLISH, PROTOBUFS, BYTES)), args.out)


if __name__ == "__main__":
    main()
