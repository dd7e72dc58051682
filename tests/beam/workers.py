"""Threads with a DoFn each, as a streaming worker has them, and bundles that wait for the engine together."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from apache_beam.metrics.execution import MetricsContainer
from apache_beam.runners.worker import statesampler
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.counters import CounterFactory

from tests.beam.pipelines import run_bundle
from tests.server.serving import PATIENCE, eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from beam_hedge.write_fn import WriteFn


class Worker:
    """A thread of a worker, with a DoFn of its own whose metrics Beam keeps. The test ends it with `close`."""

    def __init__(self, write_fn: WriteFn, bundle: Callable[[Any, list[bytes]], Any]) -> None:
        self.write_fn = write_fn
        self._bundle = bundle
        self._container = MetricsContainer("write")
        self._pool = ThreadPoolExecutor(1)
        self.do(self._set_up).result(PATIENCE)

    def run_bundle(self, *elements: bytes) -> Future[Any]:
        """Does on the thread what a runner does for one bundle."""
        return self.do(self._bundle, self.write_fn, list(elements))

    def do(self, work: Callable[..., Any], *args: Any) -> Future[Any]:
        """Does work on the thread."""
        return self._pool.submit(self._run, work, *args)

    def counters(self) -> dict[str, int]:
        """Returns the DoFn's counters, as a worker reports them to its runner."""
        found = self._container.get_cumulative().counters
        return {key.metric.name: value for key, value in found.items()}

    def close(self) -> None:
        """Ends the DoFn and the thread."""
        self.do(self.write_fn.teardown).result(PATIENCE)
        self._pool.shutdown()

    def _set_up(self) -> None:
        self.write_fn.setup()
        self._bundle(self.write_fn, [b"warm"])

    def _run(self, work: Callable[..., Any], *args: Any) -> Any:
        # Beam finds a step's metrics by the thread.
        sampler = statesampler.StateSampler("", CounterFactory())
        statesampler.set_current_tracker(sampler)
        try:
            with sampler.scoped_state("write", "process", metrics_container=self._container):
                return work(*args)
        finally:
            statesampler.set_current_tracker(None)


@contextmanager
def working(
    make: Callable[[], WriteFn], threads: int, bundle: Callable[[Any, list[bytes]], Any] = run_bundle
) -> Iterator[list[Worker]]:
    """Starts workers that have each finished a bundle."""
    workers: list[Worker] = []
    try:
        workers.extend(Worker(make(), bundle) for _ in range(threads))
        yield workers
    finally:
        for worker in workers:
            worker.close()


def together(workers: list[Worker], data: dict[Worker, bytes]) -> list[Any]:
    """Has each worker publish a bundle of one message before the engine looks; returns what bundles gave."""
    with held_up(workers):
        running = [worker.run_bundle(data[worker]) for worker in workers]
    return [each.result(PATIENCE) for each in running]


@contextmanager
def held_up(workers: list[Worker]) -> Iterator[None]:
    """Holds the engine's thread until each worker has a batch waiting for it."""
    publisher = workers[0].write_fn._lease.publisher
    # A bundle may end a moment before its permits are back.
    eventually(lambda: publisher._flow.batches == 0)
    go = threading.Event()
    publisher._engine.submit(go.wait, PATIENCE)
    try:
        yield
        eventually(lambda: len(publisher._dispatcher._waiting) == len(workers))
    finally:
        go.set()


def sum_of(workers: list[Worker]) -> Counter[str]:
    """Returns the sums of the workers' counters."""
    found: Counter[str] = Counter()
    for worker in workers:
        found.update(worker.counters())
    return found


def run_tracked(write_fn: Any, elements: list[bytes]) -> list[Any]:
    """Runs a bundle of a DoFn that wants elements with their windows, and returns its outputs."""
    write_fn.start_bundle()
    outputs = [
        output for each in elements for output in write_fn.process(each, GlobalWindows.windowed_value(each))
    ]
    return [*outputs, *write_fn.finish_bundle()]
