"""What the model knows of leases: who holds one, and so which publisher has to be open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.process import config_of

if TYPE_CHECKING:
    from beam_hedge.lease import Lease
    from beam_hedge.publisher import HedgingPublisher
    from beam_hedge.publisher_config import PublisherConfig
    from tests.model.process import VirtualProcess

LINGER = 60.0
_CLOSE = 1e-6


class Leases:
    """The leases of a process.

    Args:
        process: The process.
        configs: What can be leased.

    Attributes:
        held: Leases with the number of their configuration.
    """

    def __init__(self, process: VirtualProcess, configs: list[PublisherConfig]) -> None:
        self._process = process
        self._configs = configs
        self.held: list[tuple[int, Lease]] = []
        self._idle_since: dict[int, float] = {}
        self._gone: set[HedgingPublisher] = set()
        self._spoken_for: dict[int, HedgingPublisher] = {}

    def acquire(self, number: int) -> None:
        """Takes one more lease."""
        self.held.append((number, self._process.registry.acquire(self._configs[number])))
        self._idle_since.pop(number, None)

    def end(self, which: int, *, twice: bool) -> None:
        """Ends a lease: by release, or by dropping it."""
        number, lease = self.held.pop(which % len(self.held))
        if twice:
            lease.release()
            lease.release()
        del lease
        if all(other != number for other, _ in self.held):
            self._idle_since[number] = self._process.now
        self._process.engine.loop.run_ready()

    def end_all(self, number: int | None = None) -> None:
        """Ends all leases, or all of one configuration."""
        for which in reversed(range(len(self.held))):
            if number in (None, self.held[which][0]):
                self.end(which, twice=False)

    def publisher(self, which: int) -> HedgingPublisher:
        """Returns the publisher of a lease."""
        number, lease = self.held[which % len(self.held)]
        made = lease.publisher
        assert made.usable, "a lease without a publisher that works"
        assert config_of(made, self._configs) == number, "another sink's publisher"
        return made

    def close(self, made: HedgingPublisher) -> None:
        """Closes a publisher behind its leases' backs, as a program's end does."""
        if made.usable:
            made.close_soon()
        self._gone.add(made)

    def engine_dies(self) -> None:
        """Ends the engine under all publishers."""
        self._gone.update(self._process.publishers)
        self._process.engine_dies()

    def check(self) -> None:
        """Objects to a publisher that is open or closed when it should not be, or has another's budget."""
        now = self._process.now
        buckets: dict[int, int] = {}
        for made in self._process.publishers:
            number = config_of(made, self._configs)
            bucket = buckets.setdefault(number, id(made.token_bucket))
            assert bucket == id(made.token_bucket), "the budget did not outlive the publisher"
            if made in self._gone:
                continue
            idle = now - self._idle_since.get(number, now)
            if idle < LINGER - _CLOSE:
                assert made.usable, "closed while it is leased, or before its linger is over"
            elif idle > LINGER + _CLOSE:
                assert not made.usable, "open longer than a linger after its last lease"
            if not made.usable:
                self._gone.add(made)
        open_ones = [config_of(made, self._configs) for made in self._process.publishers if made.usable]
        assert len(open_ones) == len(set(open_ones)), "two publishers of one configuration"
