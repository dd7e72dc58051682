"""Memory, threads and file descriptors after 100,000 messages and after a million: they must be the same.

Messages of 1 KiB go through the sink's DoFn, bundle by bundle, to a server in a process of its own. Run it
with `python -m benchmarks.steady_memory`; it fails if memory has grown by more than 20 MiB, or if there are
more threads or descriptors than before.
"""

from __future__ import annotations

import argparse
import multiprocessing
from typing import TYPE_CHECKING

from google.cloud.pubsub_v1.types import BatchSettings

from beam_hedge import WriteToPubSubHedged
from benchmarks.load import MESSAGE
from benchmarks.server import served_topic
from benchmarks.soaking.watch import ALLOWED_GROWTH, MIB, usage

if TYPE_CHECKING:
    from beam_hedge.write_fn import WriteFn
    from benchmarks.soaking.watch import Usage

_BUNDLE = 10_000


def compare(early: Usage, late: Usage) -> list[str]:
    """Returns what has grown, in words.

    Args:
        early: After the first part of the messages.
        late: After all of them.
    """
    found = []
    if late.rss - early.rss > ALLOWED_GROWTH:
        grown = (late.rss - early.rss) / MIB
        found.append(f"memory has grown by {grown:.1f} MiB; {ALLOWED_GROWTH / MIB:.0f} are allowed")
    found += [
        f"{name} have grown from {getattr(early, name)} to {getattr(late, name)}"
        for name in ("threads", "descriptors")
        if getattr(late, name) > getattr(early, name)
    ]
    return found


def publish(topic: str, early: int, messages: int, batch: int) -> tuple[Usage, Usage]:
    """Publishes messages; returns what the process holds after the first `early` of them, and after all."""
    batches = BatchSettings(max_messages=batch, max_bytes=9_000_000, max_latency=600)
    write_fn = WriteToPubSubHedged(topic, batch_settings=batches)._write_fn()  # noqa: SLF001 - what a runner gets
    write_fn.setup()
    try:
        _do_bundles(write_fn, early)
        before = usage()
        _do_bundles(write_fn, messages - early)
        return before, usage()
    finally:
        write_fn.teardown()


def _do_bundles(write_fn: WriteFn, messages: int) -> None:
    for begin in range(0, messages, _BUNDLE):
        write_fn.start_bundle()
        for number in range(begin, min(begin + _BUNDLE, messages)):
            # Each a new object, as elements are.
            write_fn.process(b"%08d" % number + MESSAGE[8:])
        write_fn.finish_bundle()


def main() -> None:
    """Publishes with each size of batch, prints what was held, and exits with 1 if something has grown."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--messages", type=int, default=1_000_000, help="in all; default 1,000,000")
    parser.add_argument("--early", type=int, default=100_000, help="before the first look; default 100,000")
    parser.add_argument("--batch", type=int, nargs="+", default=[100, 1000], help="messages; default 100 1000")
    args = parser.parse_args()
    found = []
    print("| messages a batch | after messages | memory MiB | threads | descriptors |\n|---|---|---|---|---|")
    for batch in args.batch:
        # A fresh process each, or the second would find the buffers of the first.
        with served_topic("fast") as topic, multiprocessing.get_context("spawn").Pool(1) as pool:
            held = pool.apply(publish, (topic, args.early, args.messages, batch))
        for messages, each in zip((args.early, args.messages), held, strict=True):
            print(
                f"| {batch} | {messages:,} | {each.rss / MIB:.1f} | {each.threads} | {each.descriptors} |",
                flush=True,
            )
        found += compare(*held)
    if found:
        raise SystemExit("".join(f"\nBROKEN: {each}" for each in found))


if __name__ == "__main__":
    main()
