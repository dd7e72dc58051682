"""How CPU and memory grow: with the number of messages, with batches in flight, and while the server stalls.

Every point is a process of its own: its CPU, and its peak of memory above what it has after setup. Lines are
least-squares fits, and the pictures show how well they fit. The server runs in a process of its own. Run it
with `python -m benchmarks.scaling`, which takes about half an hour, or with `--quick`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from beam_hedge.settings import DEFAULT_FLOW_CONTROL
from benchmarks.amounts import Amount, parse
from benchmarks.report import Column, Report
from benchmarks.scaling_plots import draw_growth, draw_stall
from benchmarks.scaling_points import hold_batches, measure, publish_messages
from benchmarks.server import serving
from benchmarks.spread import columns, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.scaling_points import Point

_MIB = 2**20
_AMOUNTS = (
    Amount("runs", 5, 1, "runs of each point, in turn with the others"),
    Amount("messages", 1_000_000, 100_000, "the most messages"),
    Amount("batches", 10_000, 10_000, "the most batches in flight"),
    Amount("stall", 20.0, 8.0, "seconds for which the server answers nothing"),
)
MESSAGES = (0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 1.0)
BATCHES = (0.0001, 0.001, 0.01, 0.1, 0.25, 0.5, 1.0)
STALLED = (0.1, 0.3, 1.0)
_COLUMNS = (
    *columns("cpu", "CPU s", ".2f"),
    *columns("memory", "peak memory above that after setup, MiB", ".1f"),
)
_STALL_COLUMNS = (
    Column("size", "messages", ",d"),
    *columns("memory", "peak memory above that after setup, MiB", ".1f"),
    Column("limit", "flow control's limit, MiB", ".1f"),
    Column("allowed", "that and 120 MB, MiB", ".1f"),
    *columns("wall", "seconds", ".1f"),
)
# What 1 KiB of data takes of flow control's bytes: the message's part of a request.
_MESSAGE_BYTES = 1030
_SPARE = 120_000_000


def steps(parts: Sequence[float], most: int, *, quick: bool) -> list[int]:
    """Returns the sizes to measure: parts of the largest one, the largest included.

    Args:
        parts: Of the largest, growing; the last is 1.
        most: The largest.
        quick: Whether every third is enough.
    """
    return sorted({max(1, round(most * part)) for part in (parts[::-3] if quick else parts)})


def grow(
    work: Callable[[int], Point], sizes: Sequence[int], runs: int, stall: float = 0.0
) -> list[dict[str, Any]]:
    """Measures sizes in turn, several times over.

    Args:
        work: `publish_messages` or `hold_batches`.
        sizes: What it is given.
        runs: How many times each.
        stall: For how many seconds the server answers nothing.

    Returns:
        A line for each size: medians, with the least and the most.
    """
    points: dict[int, list[Point]] = {size: [] for size in sizes}
    for _ in range(runs):
        for size, found in points.items():
            with serving() as server:
                found.append(measure(work, size, server, stall))
            print(f"  {work.__name__} {size:,}: {found[-1].wall:.1f} s", flush=True)
    return [
        {
            "size": size,
            **spread("cpu", [point.cpu for point in found]),
            **spread("wall", [point.wall for point in found]),
            **spread("memory", [point.memory / _MIB for point in found]),
            "in_flight": min(point.in_flight for point in found),
        }
        for size, found in points.items()
    ]


def stall_limit() -> float:
    """Returns the MiB that flow control lets out by default, of messages of 1 KiB."""
    limits = DEFAULT_FLOW_CONTROL
    return float(min(limits.byte_limit, limits.message_limit * _MESSAGE_BYTES)) / _MIB


def main() -> None:
    """Measures, and writes three reports."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    args = parse(parser, _AMOUNTS)
    runs = f"Medians of {args.runs} alternating runs, each in a fresh process."
    lines = grow(publish_messages, steps(MESSAGES, args.messages, quick=args.quick), args.runs)
    text = f"Messages of 1 KiB through WriteToPubSubHedged on the FnApiRunner, answered at once. {runs}"
    table: tuple[Column, ...] = (Column("size", "messages", ",d"), *_COLUMNS)
    picture = draw_growth(lines, "messages", memory_grows=False)
    Report("scaling", "Growth with the number of messages", text, table, lines).write(picture, args.out)

    lines = grow(hold_batches, steps(BATCHES, args.batches, quick=args.quick), args.runs, args.stall)
    text = (
        f"Batches of one message of 1 KiB. The server answers nothing for {args.stall:g} s, so that they pile "
        f"up; flow control lets all of them out. {runs}"
    )
    table = (Column("size", "batches", ",d"), Column("in_flight", "in flight at once", ",d"), *_COLUMNS)
    picture = draw_growth(lines, "batches in flight", memory_grows=True)
    Report("scaling_in_flight", "Growth with batches in flight", text, table, lines).write(picture, args.out)

    lines = grow(publish_messages, steps(STALLED, args.messages, quick=args.quick), args.runs, args.stall)
    limit = stall_limit()
    for line in lines:
        line |= {"limit": limit, "allowed": limit + _SPARE / _MIB}
    text = (
        "A pipeline publishes messages of 1 KiB to a server that answers nothing for the first "
        f"{args.stall:g} s. Flow control has its defaults: 10,000 messages or 100,000,000 bytes out. {runs}"
    )
    report = Report("scaling_stall", "Memory while the server stalls", text, _STALL_COLUMNS, lines)
    report.write(draw_stall(lines), args.out)


if __name__ == "__main__":
    main()
