"""How often a publisher's connections were suspected and replaced."""

from __future__ import annotations

import threading


class ConnectionCounts:
    """What happened to a publisher's connections, which no single batch can tell.

    The engine's thread counts, and any thread may take what has come since the last time. The lock is held
    only for that.
    """

    def __init__(self) -> None:
        self.suspected = 0
        self.replaced = 0
        self._lock = threading.Lock()
        self._taken = (0, 0)

    def take(self) -> dict[str, int]:
        """Returns, by the names of their Beam counters, what nobody has taken yet; empty if that is nothing."""
        # Each bundle asks, and hardly ever is there anything: what comes in this moment is for the next one.
        if (self.suspected, self.replaced) == self._taken:
            return {}
        with self._lock:
            now, before = (self.suspected, self.replaced), self._taken
            self._taken = now
        return {
            "connections_suspected": now[0] - before[0],
            "connections_replaced": now[1] - before[1],
        }
