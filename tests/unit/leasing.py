"""A lease registry without a network: its publishers only note what is done to them, in virtual time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

from beam_hedge.errors import EngineDiedError
from beam_hedge.lease import LeaseRegistry
from beam_hedge.publisher_config import PublisherConfig
from beam_hedge.settings import DEFAULT_FLOW_CONTROL, HedgingSettings, RetrySettings
from beam_hedge.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.lease import Lease
    from beam_hedge.token_bucket import TokenBucket

# What the library must keep to.
LINGER = 60.0


def config(connections: int = 2) -> PublisherConfig:
    """Makes a configuration; equal ones are different objects."""
    return PublisherConfig(
        "projects/p-test/topics/out", HedgingSettings(), RetrySettings(), DEFAULT_FLOW_CONTROL, connections
    )


class FakePublisher:
    """Stands for a publisher.

    Attributes:
        config: What it was made of.
        bucket: The bucket that it was given.
        usable: Whether it is open and its engine lives.
        closed_at: When it was closed; at most once.
        on_close: Called when closing begins.
    """

    def __init__(self, made_of: PublisherConfig, bucket: TokenBucket, clock: FakeClock) -> None:
        self.config = made_of
        self.bucket = bucket
        self.usable = True
        self.closed_at: list[float] = []
        self.on_close: Callable[[], object] = _nothing
        self._clock = clock
        self._engine_lives = True

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> None:
        """Runs it on the engine."""
        if not self._engine_lives:
            raise EngineDiedError
        self._clock.call_later(delay, callback, *args)

    def close_soon(self) -> None:
        """Closes it."""
        self.on_close()
        self.usable = False
        self.closed_at.append(round(self._clock.time(), 6))

    def engine_dies(self, *, unnoticed: bool = False) -> None:
        """Ends its engine; unnoticed: so shortly ago that `usable` was looked at before."""
        self._engine_lives = False
        self.usable = unnoticed


class Leasing:
    """A registry with its publishers.

    Attributes:
        clock: The engine's time.
        made: All publishers, in the order in which they were made.
        on_make: Called while one is made.
        registry: What is tested.
    """

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.made: list[FakePublisher] = []
        self.on_make: Callable[[], object] = _nothing
        self.registry = LeaseRegistry(cast("Any", self._make))

    def acquire(self, connections: int = 2) -> Lease:
        """Leases a publisher."""
        return self.registry.acquire(config(connections))

    @property
    def open(self) -> list[FakePublisher]:
        """The publishers that are not closed."""
        return [publisher for publisher in self.made if not publisher.closed_at]

    def _make(self, made_of: PublisherConfig, bucket: TokenBucket) -> FakePublisher:
        self.on_make()
        publisher = FakePublisher(made_of, bucket, self.clock)
        self.made.append(publisher)
        return publisher


def publisher_of(lease: Lease) -> FakePublisher:
    """Returns the publisher that a lease gives."""
    return cast("FakePublisher", lease.publisher)


class WatchedLock:
    """The registry's lock, which tells who wants it and never lets a thread wait for itself.

    Attributes:
        wanted: Released once for each thread that asks for the lock.
    """

    def __init__(self, registry: LeaseRegistry) -> None:
        self.wanted = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._holder: int | None = None
        registry._lock = cast("threading.Lock", self)

    def acquire(self, *, blocking: bool = True) -> bool:
        """Takes it."""
        me = threading.get_ident()
        assert not blocking or self._holder != me, "the thread waits for itself for ever"
        self.wanted.release()
        taken = self._lock.acquire(blocking=blocking)
        if taken:
            self._holder = me
        return taken

    def release(self) -> None:
        """Gives it back."""
        self._holder = None
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_details: object) -> None:
        self.release()


def _nothing() -> None:
    """What else happens while a publisher is made or closed, unless a test says otherwise."""
