"""One publisher for each configuration in a worker process, shared by all who hold a lease on it.

A runner may make a DoFn for each bundle, so a publisher outlives its last lease by a linger, and its token
bucket outlives the publisher.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import TYPE_CHECKING

from beam_hedge.channel_factory import emulator_host
from beam_hedge.engine import check_not_forked
from beam_hedge.errors import EngineDiedError
from beam_hedge.publisher import HedgingPublisher
from beam_hedge.token_bucket import make_token_bucket

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.publisher_config import PublisherConfig
    from beam_hedge.token_bucket import TokenBucket

LINGER = 60.0
_RETRY_LINGER = 1.0


class Lease:
    """The right to use a shared publisher, until `release` or until it is garbage.

    Made by `LeaseRegistry.acquire`. Never pickled.
    """

    def __init__(self, registry: LeaseRegistry, shared: _Shared) -> None:
        self._registry = registry
        self._shared = shared
        # First of all: what is held must be given up, even if Ctrl-C comes next.
        self.release = weakref.finalize(self, _release, shared, id(self), registry.linger)
        self.release.atexit = False
        shared.holders.add(id(self))

    @property
    def publisher(self) -> HedgingPublisher:
        """The shared publisher; a new one if its engine has died."""
        return self._registry.publisher(self._shared)


class LeaseRegistry:
    """Who uses which publisher.

    The registry owns its lock and holds it while a publisher is looked up or made: two clients that are made
    at the same time can hang. The engine's thread never waits for it, since making a publisher waits for
    that thread.

    Args:
        make_publisher: Makes a publisher that goes on with a bucket.
        linger: Seconds that a publisher outlives its last lease.
    """

    def __init__(
        self,
        make_publisher: Callable[[PublisherConfig, TokenBucket], HedgingPublisher],
        linger: float = LINGER,
    ) -> None:
        self.linger = linger
        self._make_publisher = make_publisher
        self._lock = threading.Lock()
        self._shared: dict[object, _Shared] = {}

    def acquire(self, config: PublisherConfig) -> Lease:
        """Leases the publisher of a configuration, made if there is none.

        Raises:
            ForkedProcessError: The process was forked while a publisher was open.
        """
        check_not_forked()
        key = (config, emulator_host())
        with self._lock:
            shared = self._shared.get(key)
            if shared is None:
                shared = self._shared[key] = _Shared(config, self._lock, make_token_bucket(config.settings))
            lease = Lease(self, shared)
        try:
            self.publisher(shared)
        except BaseException:
            lease.release()
            raise
        return lease

    def publisher(self, shared: _Shared) -> HedgingPublisher:
        """Returns the usable publisher of a configuration."""
        publisher = shared.publisher
        if publisher is not None and publisher.usable:
            # The caller holds a lease, so it stays; no bundle waits while another configuration's is made.
            return publisher
        with self._lock:
            if shared.publisher is None or not shared.publisher.usable:
                shared.publisher = self._make_publisher(shared.config, shared.bucket)
            return shared.publisher


class _Shared:
    """A configuration's publisher, and who holds a lease on it."""

    def __init__(self, config: PublisherConfig, lock: threading.Lock, bucket: TokenBucket) -> None:
        self.config = config
        self.lock = lock
        self.bucket = bucket
        self.publisher: HedgingPublisher | None = None
        self.holders: set[int] = set()
        self.linger: object = None


def _release(shared: _Shared, holder: int, linger: float) -> None:
    # A finalizer, which can run on any thread at any moment: it takes no lock and its steps are atomic.
    shared.holders.discard(holder)
    publisher = shared.publisher
    if not shared.holders and publisher is not None and publisher.usable:
        shared.linger = this_linger = object()
        # A publisher whose engine dies now needs no closing.
        with contextlib.suppress(EngineDiedError):
            publisher.call_later(linger, _linger_over, shared, publisher, this_linger)


def _linger_over(shared: _Shared, publisher: HedgingPublisher, this_linger: object) -> None:
    if not shared.lock.acquire(blocking=False):
        publisher.call_later(_RETRY_LINGER, _linger_over, shared, publisher, this_linger)
        return
    try:
        if shared.holders or shared.linger is not this_linger or shared.publisher is not publisher:
            return
        shared.publisher = None
    finally:
        shared.lock.release()
    publisher.close_soon()


def _make_publisher(config: PublisherConfig, bucket: TokenBucket) -> HedgingPublisher:
    return HedgingPublisher(
        config.topic,
        config.settings,
        retry_settings=config.retry_settings,
        flow_control=config.flow_control,
        connections=config.connections,
        client_options=config.client_options,
        credentials=config.credentials,
        token_bucket=bucket,
        enable_open_telemetry_tracing=config.tracing,
    )


_registry = LeaseRegistry(_make_publisher)


def acquire(config: PublisherConfig) -> Lease:
    """Leases the process's publisher for a configuration; see `LeaseRegistry.acquire`."""
    return _registry.acquire(config)
