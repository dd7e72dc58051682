"""What hedging costs when nothing is slow: CPU, memory, requests; and what the library costs to start.

CPU is compared in one process, whose publishers take turns with short slices of the same load: hedging on, off,
and off once more. How far the two that are off lie apart is the noise. Memory is compared in fresh processes.
The server answers at once and runs in a process of its own. Run it with `python -m benchmarks.overhead`, which
takes about ten minutes, or with `--quick`.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beam_hedge import HedgingPublisher, HedgingSettings
from benchmarks import plots
from benchmarks.amounts import Amount, parse
from benchmarks.report import Column, Report
from benchmarks.server import TOPIC, serving
from benchmarks.spread import columns, spread
from benchmarks.start_up import report_start_up
from benchmarks.usage import in_fresh_process, measured, memory, peak_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

OFF, ON, AGAIN = "off (settings=None)", "on", "off, once more"
_SETTINGS = {OFF: None, ON: HedgingSettings(), AGAIN: None}
# Requests that are out at once, by the messages of each: so few that none waits long enough for a hedge.
_SIZES = {100: 60, 1: 200}
_DATA = b"x" * 1024
# So that a slice takes a few tenths of a second.
_BURSTS = 5
_GOAL = 1.02
_SHOWN = (0.8, 1.2)
_MIB = 2**20
_AMOUNTS = (
    Amount("rounds", 101, 9, "rounds of slices"),
    Amount("runs", 5, 1, "fresh processes for each figure of memory or start"),
    Amount("requests", 20_000, 3_000, "requests of a process whose memory is measured"),
)
_COLUMNS = (
    Column("messages", "messages a request", "d"),
    Column("name", "hedging"),
    *columns("cpu_us", "CPU us a request", ".1f"),
    Column("ratio", "CPU to off, median of rounds", ".4f"),
    Column("ratio_low", "a quarter is below", ".4f"),
    Column("ratio_high", "a quarter is above", ".4f"),
    Column("error", "standard error of the median", ".4f"),
    *columns("memory", "peak memory above that after setup, MiB", ".1f"),
    Column("requests", "requests made", ",d"),
    Column("extra", "requests beyond one a batch", "d"),
)


@dataclass(frozen=True)
class Slices:
    """What slices took that alternated.

    Attributes:
        cpu: Seconds of CPU a request, by name, one for each round.
        made: Batches that were published, by name.
        arrived: Requests that arrived at the server for them, by name.
    """

    cpu: dict[str, list[float]]
    made: dict[str, int]
    arrived: dict[str, int]


def take_turns(rounds: int, messages: int, requests: int) -> Slices:
    """Publishes slices of one load through three publishers in turn, in this process.

    Args:
        rounds: How many slices each gets.
        messages: Of a request.
        requests: Of a slice, out at once; it publishes so many `_BURSTS` times.
    """
    batch = [_DATA] * messages
    found = Slices({name: [] for name in _SETTINGS}, dict.fromkeys(_SETTINGS, 0), dict.fromkeys(_SETTINGS, 0))
    with serving() as server, contextlib.ExitStack() as stack:
        publishers = {
            name: stack.enter_context(HedgingPublisher(server.topic, settings))
            for name, settings in _SETTINGS.items()
        }
        for publisher in publishers.values():
            _slice(publisher, batch, requests)
        order = list(publishers)
        for _ in range(rounds):
            for name in order:
                before = server.seen().requests
                cpu = _slice(publishers[name], batch, requests)
                found.cpu[name].append(cpu / requests / _BURSTS)
                found.made[name] += requests * _BURSTS
                found.arrived[name] += server.seen().requests - before
            # Each comes first, second and third equally often.
            order.append(order.pop(0))
    return found


def _slice(publisher: HedgingPublisher, batch: Sequence[bytes], requests: int) -> float:
    """Publishes `_BURSTS` times so many requests, and returns the seconds of CPU."""
    with measured() as usage:
        for _ in range(_BURSTS):
            for future in [publisher.publish(batch) for _ in range(requests)]:
                future.result()
    return usage.cpu


def grown(name: str, messages: int, requests: int) -> float:
    """Returns the bytes by which a fresh process's peak of memory exceeds what it has after setup."""
    batch = [_DATA] * messages
    with HedgingPublisher(TOPIC, _SETTINGS[name]) as publisher:
        publisher.publish(batch).result()
        after_setup = memory()
        for _ in range(requests // _SIZES[messages] // _BURSTS):
            _slice(publisher, batch, _SIZES[messages])
        return peak_memory() - after_setup


def ratios(cpu: Sequence[float], base: Sequence[float]) -> dict[str, float]:
    """Returns how the CPU of slices compares with that of the other slices of the same rounds."""
    each = sorted(one / other for one, other in zip(cpu, base, strict=True))
    low, middle, high = statistics.quantiles(each, n=4) if len(each) > 1 else each * 3
    # Of a median, from the quartiles, as far as ratios are spread like a normal distribution.
    error = 1.2533 * (high - low) / 1.349 / len(each) ** 0.5
    return {"ratio": middle, "ratio_low": low, "ratio_high": high, "error": error}


def main() -> None:
    """Measures, and writes two reports."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    args = parse(parser, _AMOUNTS)
    rows: list[dict[str, Any]] = []
    slices: dict[int, Slices] = {}
    for messages, requests in _SIZES.items():
        found = slices[messages] = take_turns(args.rounds, messages, requests)
        print(f"  {messages} messages a request", flush=True)
        peaks: dict[str, list[float]] = {name: [] for name in _SETTINGS}
        with serving():
            for _ in range(args.runs):
                for name, values in peaks.items():
                    values.append(in_fresh_process(grown, name, messages, args.requests) / _MIB)
        rows += [
            {
                "messages": messages,
                "name": name,
                **spread("cpu_us", [1e6 * cpu for cpu in found.cpu[name]]),
                **ratios(found.cpu[name], found.cpu[OFF]),
                **spread("memory", peaks[name]),
                "requests": found.arrived[name],
                "extra": found.arrived[name] - found.made[name],
            }
            for name in _SETTINGS
        ]
    text = (
        f"Messages of 1 KiB, answered at once. CPU: {args.rounds} rounds; in each, all three publishers get a "
        f"slice of the same load in one process, in changing order. Memory: medians of {args.runs} fresh "
        f"processes with {args.requests:,} requests. The third line of each size shows the noise: it is the "
        "second publisher of the same kind as the first."
    )
    Report("overhead", "Hedging when nothing is slow", text, _COLUMNS, rows).write(draw(slices), args.out)
    report_start_up(args.runs, args.out)


def draw(slices: dict[int, Slices]) -> Figure:
    """Draws each round's ratios."""
    figure = plots.new_figure(
        "CPU of a publisher while nothing is slow, compared with hedging off",
        "One dot for each round, the first one on top; the bar is the median. Grey: hedging off as well,\n"
        "which shows the noise. Dots at an edge lie beyond it.",
        height=5,
    )
    axes = figure.add_subplot()
    labels: list[str] = []
    for messages, found in slices.items():
        for name, color in ((AGAIN, plots.GREY), (ON, plots.OURS)):
            each = [one / base for one, base in zip(found.cpu[name], found.cpu[OFF], strict=True)]
            y = len(labels)
            middle = statistics.median(each)
            heights = [y - 0.3 + 0.6 * (number + 0.5) / len(each) for number in range(len(each))]
            shown = [min(max(ratio, _SHOWN[0]), _SHOWN[1]) for ratio in each]
            axes.plot(shown, heights, "o", color=color, alpha=0.45, markersize=4, clip_on=False)
            axes.plot([middle, middle], [y - 0.4, y + 0.4], color=color, linewidth=3)
            labels.append(f"{messages} message{'s' * (messages > 1)} a request\nhedging {name}: {middle:.3f}")
    axes.axvline(_GOAL, color=plots.BAD, linestyle="--", linewidth=1, zorder=0)
    axes.text(_GOAL, -0.6, " 2 % more", color=plots.BAD, fontsize=10, va="center")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.8)
    axes.set_xlim(*_SHOWN)
    axes.set_xlabel("CPU, as a multiple of that with hedging off in the same round", color=plots.GREY)
    plots.clean(axes, "x")
    return figure


if __name__ == "__main__":
    main()
