"""C14. What a hedge might need was kept until the hedge was due, long after the batch was published."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from beam_hedge import HedgingPublisher, HedgingSettings
from beam_hedge.batch import seal
from benchmarks.server import serving
from tests.server.serving import PATIENCE

if TYPE_CHECKING:
    import concurrent.futures

    from beam_hedge import PublishOutcome

BATCHES, SIZE = 2_000, 1_000_000
DELAY = 10.0
SETTINGS = HedgingSettings(hedge_delay=DELAY, initial_tokens=50)
ALLOWED = 100 * 2**20


def memory() -> int:
    """Returns the resident set of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_published_batch_holds_no_memory_until_its_hedge_would_be_due() -> None:
    """Two gigabytes pass through within a few hedge delays, and the process does not grow with them."""
    with serving("1:0.005") as server, HedgingPublisher(server.topic, SETTINGS) as publisher:
        publisher.publish([b"x" * SIZE]).result(PATIENCE)
        before = most = memory()
        out: deque[concurrent.futures.Future[PublishOutcome]] = deque()
        for number in range(BATCHES):
            out.append(publisher.publish([b"%7d" % number + b"x" * SIZE]))
            if len(out) == 8:
                out.popleft().result(PATIENCE)
            most = max(most, memory())
        while out:
            out.popleft().result(PATIENCE)
        assert server.seen().messages >= BATCHES + 1
    assert most - before < ALLOWED


def test_nothing_refers_to_a_batch_that_is_published() -> None:
    """The payload is free with the outcome, long before its hedge would be due; a future holds none."""
    free = threading.Event()
    with serving("1:0.005") as server, HedgingPublisher(server.topic, SETTINGS) as publisher:
        batch = seal(server.topic, [b"x" * SIZE])
        weakref.finalize(batch, free.set)
        future = publisher.publish_batch(batch)
        del batch
        assert future.result(PATIENCE).hedges == 0
        assert free.wait(DELAY / 2)


def test_nothing_of_a_published_batch_waits_for_the_garbage_collector() -> None:
    """What a request leaves is free at once: collecting it would cost as much as a third of publishing it."""
    with serving("1:0") as server, HedgingPublisher(server.topic, SETTINGS) as publisher:
        publisher.publish([b"first"]).result(PATIENCE)
        gc.collect()
        gc.disable()
        try:
            futures = [publisher.publish([b"x"]) for _ in range(100)]
            for future in futures:
                future.result(PATIENCE)
            del future, futures
            publisher.close()
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            kept = [each for each in gc.garbage if type(each).__module__.startswith("beam_hedge")]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    assert len(kept) < 10, kept[:5]
