"""What a runner does with a bundle that failed: it tries all of it again, on one instance or another."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from beam_hedge import PublishError
from tests.beam.pipelines import run_bundle
from tests.server.serving import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from beam_hedge.testing import LocalPubSub
    from beam_hedge.write_fn import WriteFn

# What runners do with the instance whose bundle failed.
REUSED, TORN_DOWN, DROPPED = WAYS = ("reused", "torn down", "dropped")

# A bundle that fails so often does not fail by chance.
_MOST_TRIES = 50


class Instance:
    """A DoFn of one thread of a worker, and what the runner does when it fails.

    Args:
        make: Makes the DoFn.
    """

    def __init__(self, make: Callable[[], WriteFn]) -> None:
        self._make = make
        self._write_fn: WriteFn | None = None

    @property
    def write_fn(self) -> WriteFn:
        """The DoFn, set up."""
        if self._write_fn is None:
            write_fn = self._make()
            write_fn.setup()
            self._write_fn = write_fn
        return self._write_fn

    def failed(self, way: str) -> None:
        """Does what runners do after a failure, one of `WAYS`."""
        if way == TORN_DOWN:
            self.close()
        elif way == DROPPED:
            self._write_fn = None

    def close(self) -> None:
        """Tears the DoFn down."""
        if self._write_fn is not None:
            self._write_fn.teardown()
        self._write_fn = None


class Storm:
    """Threads that work bundles off, each with a DoFn of its own, and try again what failed.

    Args:
        make: Makes a DoFn that wants elements with their windows.
        seed: Chooses what becomes of an instance whose bundle failed.

    Attributes:
        failed_tries: How many tries failed.
    """

    def __init__(self, make: Callable[[], WriteFn], seed: int) -> None:
        self._make = make
        self._seed = seed
        self._left: list[Sequence[Any]] = []
        self.failed_tries = 0

    def run(self, bundles: Sequence[Sequence[Any]], threads: int, patience: float) -> None:
        """Publishes all bundles. The threads end with it.

        Args:
            bundles: Their elements.
            threads: How many threads share them.
            patience: Seconds to wait for the last one.
        """
        self._left = list(bundles)
        with ThreadPoolExecutor(threads) as pool:
            running: list[Future[int]] = [pool.submit(self._work, number) for number in range(threads)]
            self.failed_tries = sum(each.result(patience) for each in running)

    def _work(self, number: int) -> int:
        draw = random.Random(f"{self._seed} {number}")
        instance = Instance(self._make)
        failures = 0
        try:
            while self._left:
                try:
                    elements = self._left.pop()
                except IndexError:
                    break
                failures += self._publish(instance, elements, draw)
        finally:
            instance.close()
        return failures

    def _publish(self, instance: Instance, elements: Sequence[Any], draw: random.Random) -> int:
        failures = 0
        while not self._try(instance, elements, draw):
            failures += 1
            assert failures < _MOST_TRIES, "that is no chance"
        return failures

    def _try(self, instance: Instance, elements: Sequence[Any], draw: random.Random) -> bool:
        try:
            run_bundle(instance.write_fn, elements)
        except PublishError:
            instance.failed(draw.choice(WAYS))
            return False
        return True


def check_silence(server: LocalPubSub, seconds: float) -> None:
    """Fails if a call is open, or comes, once all have ended.

    Args:
        server: Which counts calls.
        seconds: How long to listen: longer than the delays of hedges and retries that must not come.
    """
    requests = server.wait_for(lambda ledger: not ledger.open, timeout=PATIENCE).requests
    with pytest.raises(TimeoutError):
        server.wait_for(lambda ledger: ledger.requests > requests, timeout=seconds)
