"""What bad messages cost when they become dead letters: one in a thousand, among messages that are published.

The bad ones are refused by the service, which splits their batches, or by the sink's own checks. First it is
shown that all others arrive exactly as sent; then the CPU of the whole pipeline, and that of the write step
(less what the same pipeline costs without a sink), are compared with those of a run without bad messages, in
the same process and in turn. The server runs in a process of its own. Run it with `python -m
benchmarks.dead_letters`.
"""

from __future__ import annotations

import argparse
import resource
import statistics
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import grpc
from google.cloud.pubsub_v1 import SubscriberClient
from google.cloud.pubsub_v1.types import BatchSettings

from beam_hedge import WriteToPubSubHedged
from beam_hedge.testing import Reply
from benchmarks.server import stored_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apache_beam.runners.runner import PipelineResult

    from beam_hedge.testing import RequestRecord

_EVERY = 1000
_REFUSED = b"the service refuses this"
_FILLING = b"x" * 1014
_SUBSCRIPTION = "projects/benchmark/subscriptions/all"
# One of each thousand messages is this one.
_BAD = {"clean": None, "refused by the service": _REFUSED, "refused by our checks": b""}


def refuse(record: RequestRecord) -> Reply | None:
    """What the server does with a request that holds a bad message."""
    return Reply(status=grpc.StatusCode.INVALID_ARGUMENT) if _REFUSED in record.raw else None


def _messages(count: int, bad: bytes | None) -> Iterator[bytes]:
    for number in range(count):
        # In the middle of a thousand, not at the beginning of a batch.
        if bad is not None and number % _EVERY == _EVERY // 2:
            yield bad
        else:
            yield b"%010d" % number + _FILLING


@dataclass(frozen=True)
class Run:
    """What one pipeline did.

    Attributes:
        cpu: Seconds of CPU of this process.
        published: Messages that the sink counted as published.
        failed: Messages that it counted as failed.
        letters: Dead letters that came out.
        requests: Publish requests that it sent.
    """

    cpu: float
    published: int
    failed: int
    letters: int
    requests: int


def _run(count: int, bad: bytes | None, sink: WriteToPubSubHedged | None) -> Run:
    pipeline = beam.Pipeline(runner="FnApiRunner")
    source = beam.FlatMap(lambda number: _messages(number, bad)).with_output_types(bytes)
    elements = pipeline | beam.Create([count], reshuffle=False) | source
    if sink is None:
        _ = elements | beam.Map(lambda _element: None)
    else:
        letters = beam.metrics.Metrics.counter("benchmark", "letters")
        _ = (elements | sink).failed | beam.Map(lambda _letter: letters.inc())
    before = resource.getrusage(resource.RUSAGE_SELF)
    result = pipeline.run()
    result.wait_until_finish()
    after = resource.getrusage(resource.RUSAGE_SELF)
    found = _counters(result)
    return Run(
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        found.get("messages_published", 0),
        found.get("messages_failed", 0),
        found.get("letters", 0),
        found.get("publish_attempts", 0),
    )


def _counters(result: PipelineResult) -> dict[str, int]:
    found: list[Any] = result.metrics().query()["counters"]
    return {counter.key.metric.name: counter.result for counter in found}


def _pull(count: int) -> Counter[bytes]:
    """Returns what is in the subscription: `count` messages, and all that there are beyond them."""
    pulled: Counter[bytes] = Counter()
    with SubscriberClient() as subscriber:
        while True:
            enough = pulled.total() >= count
            answer = subscriber.pull(
                subscription=_SUBSCRIPTION, max_messages=1000, return_immediately=enough or None, timeout=60
            )
            if not answer.received_messages:
                return pulled
            pulled.update(each.message.data for each in answer.received_messages)
            ack_ids = [each.ack_id for each in answer.received_messages]
            subscriber.acknowledge(subscription=_SUBSCRIPTION, ack_ids=ack_ids)


def _show_exactness(messages: int, batch_settings: BatchSettings) -> None:
    print("| bad messages | published | pulled exactly as sent | dead letters |\n|---|---|---|---|")
    for name, bad in _BAD.items():
        with stored_topic(refuse, keep_messages=True) as topic:
            with SubscriberClient() as subscriber:
                subscriber.create_subscription(name=_SUBSCRIPTION, topic=topic)
            sink = WriteToPubSubHedged(topic, batch_settings=batch_settings, dead_letter=True)
            run = _run(messages, bad, sink)
            sent = Counter(message for message in _messages(messages, bad) if message != bad)
            pulled = _pull(sent.total())
        if pulled.keys() != sent.keys() or run.letters != run.failed or run.letters != messages - sent.total():
            raise SystemExit(f"{name}: {pulled.total()} pulled, {run.letters} dead letters")
        print(f"| {name} | {run.published:,} | {sum((sent & pulled).values()):,} | {run.letters:,} |")


def _show_costs(messages: int, runs: int, batch_settings: BatchSettings) -> None:
    whole: dict[str, list[float]] = {name: [] for name in _BAD}
    step: dict[str, list[float]] = {name: [] for name in _BAD}
    requests: dict[str, list[int]] = {name: [] for name in _BAD}
    with stored_topic(refuse) as topic:
        sink = WriteToPubSubHedged(topic, batch_settings=batch_settings, dead_letter=True)
        # The first run pays for imports and connections.
        _run(messages // 10, None, sink)
        for _ in range(runs):
            for name, bad in _BAD.items():
                run, base = _run(messages, bad, sink), _run(messages, bad, None)
                whole[name].append(run.cpu / messages * 1e6)
                step[name].append((run.cpu - base.cpu) / messages * 1e6)
                requests[name].append(run.requests)
    print("\n| bad messages | requests | pipeline, us/message | to clean | write step, us/message | to clean |")
    print("|---|---|---|---|---|---|")
    for name in _BAD:
        shown = " | ".join(f"{_spread(values[name])} | {_ratio(values, name):.2f}" for values in (whole, step))
        print(f"| {name} | {statistics.median(requests[name]):,.0f} | {shown} |")


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _ratio(values: dict[str, list[float]], name: str) -> float:
    return statistics.median(values[name]) / statistics.median(values["clean"])


def main() -> None:
    """Prints what arrived and what came out, then microseconds of CPU a message, and ratios to a clean run."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--messages", type=int, default=100_000, help="messages of 1 KiB in a run")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--batch", type=int, default=100, help="the most messages of a batch")
    args = parser.parse_args()
    batch_settings = BatchSettings(max_messages=args.batch, max_bytes=9_000_000)
    _show_exactness(args.messages, batch_settings)
    _show_costs(args.messages, args.runs, batch_settings)


if __name__ == "__main__":
    main()
