"""Small bundles, as streaming makes them: each is published and waited for before its thread takes the next.

Threads do nothing but that, so what limits them is what a bundle costs. The server answers at once and runs
in a process of its own. Ways to publish alternate, and the medians of several rounds count. Run it with
`python -m benchmarks.tiny_bundles`.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.io.gcp.pubsub import _PubSubWriteDoFn
from google.cloud.pubsub_v1 import PublisherClient

from beam_hedge import HedgingPublisher, WriteToPubSubHedged
from benchmarks import plots
from benchmarks.report import Column, Report, add_out
from benchmarks.server import serving
from demo.result import percentile

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    Bundle = Callable[[int], None]

_DATA = b"x" * 1024
_CLIENT, _BEAM, _SINK, _PUBLISHER = (
    "google-cloud-pubsub's PublisherClient",
    "beam.io.WriteToPubSub, its DoFn",
    "WriteToPubSubHedged, its DoFn",
    "HedgingPublisher",
)
_COLORS = {_CLIENT: plots.BAD, _BEAM: plots.GREY, _SINK: plots.OTHERS[5], _PUBLISHER: plots.OURS}
_COLUMNS = (
    Column("threads", "threads", "d"),
    Column("messages", "messages a bundle", "d"),
    Column("name", "published with"),
    Column("rate", "messages/s", ",.0f"),
    Column("rate_least", "least", ",.0f"),
    Column("rate_most", "most", ",.0f"),
    Column("p50_ms", "bundle p50 ms", ".2f"),
    Column("p99_ms", "bundle p99 ms", ".2f"),
    Column("cpu_us", "CPU us a message", ".0f"),
    Column("times", "times the client's messages/s", ".1f"),
)


@dataclass
class _Samples:
    """What the rounds of one way to publish came to."""

    rates: list[float] = field(default_factory=list)
    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)


def _client(topic: str) -> Callable[[], Bundle]:
    client = PublisherClient()

    def bundle(messages: int) -> None:
        for future in [client.publish(topic, _DATA) for _ in range(messages)]:
            future.result()

    return lambda: bundle


def _publisher(topic: str) -> Callable[[], Bundle]:
    publisher = HedgingPublisher(topic)

    def bundle(messages: int) -> None:
        publisher.publish([_DATA] * messages).result()

    return lambda: bundle


def _do_fn(make: Callable[[], Any]) -> Callable[[], Bundle]:
    def per_thread() -> Bundle:
        # A runner gives each thread an instance of its own.
        fn = make()
        fn.setup()

        def bundle(messages: int) -> None:
            fn.start_bundle()
            for _ in range(messages):
                fn.process(_DATA)
            fn.finish_bundle()

        return bundle

    return per_thread


def _ways(topic: str) -> dict[str, Callable[[], Bundle]]:
    hedged, plain = WriteToPubSubHedged(topic), beam.io.WriteToPubSub(topic)
    return {
        _CLIENT: _client(topic),
        # Beam's sink takes encoded messages from the step before it.
        _BEAM: _do_fn(lambda: _EncodeAndWrite(plain)),
        _SINK: _do_fn(hedged._write_fn),  # noqa: SLF001 - what a runner is given
        _PUBLISHER: _publisher(topic),
    }


class _EncodeAndWrite:
    """Both steps of Beam's sink."""

    def __init__(self, transform: Any) -> None:
        self._transform = transform
        self._fn = _PubSubWriteDoFn(transform)
        self.setup, self.start_bundle, self.finish_bundle = (
            getattr(self._fn, name) for name in ("setup", "start_bundle", "finish_bundle")
        )

    def process(self, element: bytes) -> None:
        self._fn.process(self._transform.bytes_to_proto_str(element))


def _run(per_thread: Callable[[], Bundle], threads: int, messages: int, seconds: float, into: _Samples) -> None:
    latencies: list[float] = []
    begin = threading.Barrier(threads + 1)
    stop = threading.Event()

    def work() -> None:
        bundle = per_thread()
        bundle(messages)
        begin.wait()
        while not stop.is_set():
            start = time.perf_counter()
            bundle(messages)
            latencies.append(1000 * (time.perf_counter() - start))

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    begin.wait()
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    time.sleep(seconds)
    stop.set()
    for worker in workers:
        worker.join()
    after, wall = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter() - start
    published = len(latencies) * messages
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    latencies.sort()
    into.rates.append(published / wall)
    into.p50_ms.append(percentile(latencies, 50))
    into.p99_ms.append(percentile(latencies, 99))
    into.cpu_us.append(cpu / published * 1e6)


def _measure(threads: int, messages: int, rounds: int, seconds: float) -> dict[str, _Samples]:
    with serving() as server:
        ways = _ways(server.topic)
        samples = {name: _Samples() for name in ways}
        for _ in range(rounds):
            for name, per_thread in ways.items():
                _run(per_thread, threads, messages, seconds, samples[name])
    return samples


def _rows(threads: int, messages: int, samples: dict[str, _Samples]) -> list[dict[str, Any]]:
    client = statistics.median(samples[_CLIENT].rates)
    return [
        {
            "threads": threads,
            "messages": messages,
            "name": name,
            "rate": (rate := statistics.median(each.rates)),
            "rate_least": min(each.rates),
            "rate_most": max(each.rates),
            "p50_ms": statistics.median(each.p50_ms),
            "p99_ms": statistics.median(each.p99_ms),
            "cpu_us": statistics.median(each.cpu_us),
            "times": rate / client,
        }
        for name, each in samples.items()
    ]


def _draw(rows: list[dict[str, Any]]) -> Figure:
    figure = plots.new_figure(
        "Small bundles: messages a second, and CPU for each",
        "Each bundle is waited for before its thread takes the next. Both axes are logarithmic.",
        width=12,
    )
    panels = figure.subplots(1, 2)
    places = {place: number for number, place in enumerate(dict.fromkeys(map(_place, rows)))}
    for axes, key, title in zip(panels, ("rate", "cpu_us"), ("messages/s", "CPU us a message"), strict=True):
        for name, color in _COLORS.items():
            mine = [row for row in rows if row["name"] == name]
            axes.plot(
                [row[key] for row in mine],
                [places[_place(row)] for row in mine],
                "o",
                color=color,
                label=name,
                markersize=9,
            )
        axes.set_xscale("log")
        axes.set_title(title, loc="left")
        axes.set_yticks(list(places.values()), list(places) if axes is panels[0] else [""] * len(places))
        axes.invert_yaxis()
        plots.clean(axes, "both")
    panels[0].legend(loc="best", frameon=False, fontsize=10)
    return figure


def _place(row: dict[str, Any]) -> str:
    return f"{row['threads']} threads\n{row['messages']} a bundle"


def main() -> None:
    """Measures each number of threads with each size of bundle."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--messages", type=int, nargs="+", default=[1, 10, 100], help="messages of a bundle")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    add_out(parser)
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for threads in args.threads:
        for messages in args.messages:
            rows += _rows(threads, messages, _measure(threads, messages, args.rounds, args.seconds))
            print(f"  {threads} threads, {messages} a bundle", flush=True)
    text = (
        f"1 KiB a message, defaults everywhere. Medians of {args.rounds} alternating runs of "
        f"{args.seconds:g} s; CPU is that of the whole process that publishes."
    )
    Report("tiny_bundles", "Small bundles, each waited for", text, _COLUMNS, rows).write(_draw(rows), args.out)


if __name__ == "__main__":
    main()
