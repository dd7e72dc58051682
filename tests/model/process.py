"""A worker process in virtual time: the library's own publisher, leases, budget and attempts, over no network.

Only three things are replaced: the engine's thread (see `tests.model.engine`), the channels (see
`tests.unit.fakes`) and what a batch notes of its caller, which a test chooses.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import pytest

from beam_hedge import dispatcher, lease, publisher
from beam_hedge.lease import LeaseRegistry
from beam_hedge.shared_request import Accepted
from tests.model.engine import VirtualEngine
from tests.unit.fakes import FakeConnections
from tests.unit.watched_bucket import WatchedBucket

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from beam_hedge.batch import Batch
    from beam_hedge.flow_control import Permits
    from beam_hedge.interfaces import Metadata
    from beam_hedge.publisher import HedgingPublisher
    from beam_hedge.publisher_config import PublisherConfig
    from beam_hedge.settings import HedgingSettings
    from beam_hedge.token_bucket import TokenBucket
    from tests.unit.fakes import FakeCall


class VirtualChannels(FakeConnections):
    """A publisher's connections, which can freeze: a frozen one carries no answer.

    Attributes:
        frozen: The numbers of those that do.
        closed: Whether they are closed.
    """

    def __init__(self, process: VirtualProcess, connections: int, patience: float) -> None:
        super().__init__(process.engine.loop, connections)
        self.patience = patience
        self.cancel_delay = process.cancel_delay
        self.frozen: set[int] = set()
        self.closed = False
        self._process = process

    def send(
        self, batch: Batch, metadata: Metadata, timeout: float, avoid: Collection[int], *, probe: bool
    ) -> tuple[int, FakeCall]:
        """Starts a request, under the eyes of the process's witness."""
        assert not self.closed, "a request was sent by a publisher that is closed"
        suspects = {each.number for each in self.known if each.suspect}
        connection, call = super().send(batch, metadata, timeout, avoid, probe=probe)
        self._process.on_send(self, call, batch, suspects)
        return connection, call

    async def close(self) -> None:
        """Closes them; what is out ends as cancelled."""
        self.closed = True
        for call in self.calls:
            call.end_as_cancelled()


class ObservedBucket(WatchedBucket):
    """A bucket that remembers when it was asked in vain.

    Attributes:
        process: Whose time it is.
        refused_at: When there was no token for a hedge.
    """

    process: VirtualProcess

    def __init__(self, max_tokens: int, refill_ratio: float, initial_tokens: int = 0) -> None:
        super().__init__(max_tokens, refill_ratio, initial_tokens)
        self.refused_at: list[float] = []

    def try_acquire(self) -> bool:
        """Takes a token if there is one."""
        acquired = super().try_acquire()
        if not acquired:
            self.refused_at.append(self.process.now)
        return acquired


class VirtualProcess:
    """One worker process. It replaces parts of the library until `end`.

    Args:
        on_send: Told of each request: the channels, the call, the batch, and the connections that were
            suspect just before.

    Attributes:
        cancel_delay: How long a cancelled call takes to end, in seconds.
        caller: Which of the process's threads publishes next.
        engine: The engine that lives.
        publishers: All that were ever made.
        buckets: All that were ever made.
        errors: What the library has logged as an error.
    """

    def __init__(self, on_send: Callable[[VirtualChannels, FakeCall, Batch, set[int]], object]) -> None:
        self.on_send = on_send
        self.cancel_delay = 0.0
        self.caller = 0
        self.engine = VirtualEngine(0.0)
        self.publishers: list[HedgingPublisher] = []
        self.buckets: list[ObservedBucket] = []
        self.errors: list[str] = []
        self._batches = 0
        self._patches = pytest.MonkeyPatch()
        self._patches.setattr(publisher, "join_engine", self._join)
        self._patches.setattr(publisher, "make_channel_factory", lambda *_: self)
        self._patches.setattr(publisher, "Channels", VirtualChannels)
        self._patches.setattr(dispatcher, "Accepted", self._accepted)
        self._patches.setattr(lease, "make_token_bucket", self._make_bucket)
        self._log = _ErrorLog(self.errors)
        logging.getLogger("beam_hedge").addHandler(self._log)
        make = lease._make_publisher
        self.registry = LeaseRegistry(lambda config, bucket: self._keep(make(config, bucket)))

    @property
    def now(self) -> float:
        """Virtual seconds."""
        return self.engine.loop.time()

    def works(self, made: HedgingPublisher) -> bool:
        """Whether a publisher's engine lives."""
        return cast("VirtualEngine", made._engine) is self.engine

    def engine_dies(self) -> None:
        """Ends the engine; the next publisher gets a new one."""
        self.engine.die()
        self.engine = VirtualEngine(self.now)

    def end(self) -> None:
        """Takes back all that was replaced."""
        logging.getLogger("beam_hedge").removeHandler(self._log)
        self._patches.undo()

    def _join(self, user: HedgingPublisher) -> VirtualEngine:
        return self.engine.join(user)

    def _keep(self, made: HedgingPublisher) -> HedgingPublisher:
        self.publishers.append(made)
        return made

    def _make_bucket(self, settings: HedgingSettings | None) -> TokenBucket:
        assert settings is not None, "this process hedges"
        bucket = ObservedBucket(settings.max_tokens, settings.refill_ratio, settings.initial_tokens)
        bucket.process = self
        self.buckets.append(bucket)
        return bucket

    def _accepted(self, future: Any, batch: Batch, permits: Permits, trace: None, may_share: bool) -> Accepted:
        self._batches += 1
        return Accepted(future, batch, permits, trace, may_share, self.now, self._batches, self.caller)


class _ErrorLog(logging.Handler):
    def __init__(self, errors: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps what is written."""
        self._errors.append(f"{record.getMessage()}: {record.exc_info}")


def channels_of(made: HedgingPublisher) -> VirtualChannels:
    """Returns a publisher's connections."""
    return cast("VirtualChannels", made._channels)


def config_of(made: HedgingPublisher, configs: list[PublisherConfig]) -> int:
    """Returns the number of the configuration that a publisher was made of."""
    return next(number for number, config in enumerate(configs) if config.topic == made._topic)


def bucket_of(made: HedgingPublisher) -> ObservedBucket:
    """Returns a publisher's budget."""
    return cast("ObservedBucket", made.token_bucket)
