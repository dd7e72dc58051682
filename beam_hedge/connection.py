"""What a publisher knows of each of its connections, and which of them the next attempt takes.

A *suspect* has been silent since an attempt was sent that is overdue by now. A *lagging* connection has not
answered a request yet although one that was sent later, on another connection, has its answer.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

from beam_hedge.settings import seconds

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from beam_hedge.settings import HedgingSettings

# While another connection is trusted, a suspect gets one original after this time, one more after the same
# time, and then after 2, 4 and 8 s: a batch that meets a dead connection costs a token and the hedge delay.
PROBE_INTERVAL = 1.0
MAX_PROBE_INTERVAL = 8.0
# How long requests may go unanswered before the connection is given up.
DEAD_AFTER = 30.0
# A tenth of the time after which a hedge is sent is early enough to act, and more than answers of a server
# that works come out of turn.
_PATIENCE_RATIO = 0.1
_NEVER = -math.inf


class Connection:
    """One connection: its requests that are out, and the signs that it is alive.

    Used on the engine's thread only. Times are monotonic seconds.

    Args:
        number: What it is called. Numbers are never used again.

    Attributes:
        number: As given.
        ready: Whether a request can be sent at once; it would otherwise wait for a handshake.
        out: How many requests are out.
        suspect: Whether it is silent although an attempt is overdue.
        last_sent: When the last request was sent.
        newest_answered: When the newest of the requests that it has answered was sent.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.ready = False
        self.out = 0
        self.suspect = False
        self.last_sent = _NEVER
        self.newest_answered = _NEVER
        # Those that are out and newer than any that was answered. One that was passed by a newer one on its
        # own connection waits for the server, not for the connection.
        self._unpassed: OrderedDict[object, float] = OrderedDict()
        self._silent_since: float | None = None
        self._next_probe = _NEVER
        self._probe_interval = PROBE_INTERVAL

    def sent(self, request: object, now: float) -> None:
        """Notes that a request was sent."""
        self.out += 1
        self.last_sent = now
        self._unpassed[request] = now
        if self._silent_since is None:
            self._silent_since = now
        if self.suspect:
            self._next_probe = now + self._probe_interval
            self._probe_interval = min(2 * self._probe_interval, MAX_PROBE_INTERVAL)

    def answered(self, request: object, now: float) -> None:
        """Notes that the server has answered a request, well or not: the connection is alive."""
        self.out -= 1
        while request in self._unpassed:
            _passed, self.newest_answered = self._unpassed.popitem(last=False)
        self._silent_since = now if self.out else None
        self.suspect = False
        self._probe_interval = PROBE_INTERVAL

    def ended(self, request: object, *, expired: bool) -> None:
        """Notes that a request has ended without a word of the server.

        Args:
            request: The request.
            expired: Whether its time was up. Otherwise it was cancelled, or lost with the connection.
        """
        self.out -= 1
        self._unpassed.pop(request, None)
        if not (self.out or self.suspect or expired):
            self._silent_since = None

    def overdue(self, request: object, now: float) -> bool:
        """Notes that a request that is out should have been answered by now.

        Returns:
            Whether that makes the connection suspect, and it was not.
        """
        if self.suspect or request not in self._unpassed:
            return False
        self.suspect = True
        self._next_probe = now + self._probe_interval
        return True

    def probe_due(self, now: float) -> bool:
        """Whether it is time to try a suspect with an original."""
        return self.suspect and now >= self._next_probe

    def lags(self, newest_answered: float, patience: float) -> bool:
        """Whether it owes the answer of a request much older than one that is answered elsewhere.

        Args:
            newest_answered: When the newest request that any connection has answered was sent.
            patience: How much older, in seconds.
        """
        return bool(self._unpassed) and newest_answered - next(iter(self._unpassed.values())) > patience

    def is_dead(self, now: float) -> bool:
        """Whether it has been silent for `DEAD_AFTER` although it owes an answer, or has been tried again."""
        if self._silent_since is None or now - self._silent_since < DEAD_AFTER:
            return False
        return self.out > 0 or self.last_sent - self._silent_since >= DEAD_AFTER / 2

    def __repr__(self) -> str:
        state = "suspect" if self.suspect else "ready" if self.ready else "not open"
        return f"<connection {self.number}: {state}, {self.out} out>"


C = TypeVar("C", bound=Connection)


def choose_connection(
    connections: Sequence[C],
    avoid: Collection[int] = (),
    *,
    now: float,
    probe: bool = False,
    patience: float = math.inf,
) -> C:
    """Picks the connection for an attempt.

    It is one that is trusted, ready and not lagging if there is such a one; of several, the one with the
    fewest requests out, and then the one that has rested longest, so that each is known to work.

    Args:
        connections: All there are, at least one.
        avoid: The numbers of those that it should not share, such as those of its batch's live attempts. They
            are avoided before all else, as long as there is another.
        now: Monotonic seconds.
        probe: Whether this attempt may try a suspect whose time has come.
        patience: Seconds by which an answer may come out of turn before its connection lags.

    Returns:
        One of the connections.

    Example:
        >>> busy, idle = Connection(0), Connection(1)
        >>> busy.sent("request", now=1.0)
        >>> choose_connection([busy, idle], now=2.0)
        <connection 1: not open, 0 out>
    """
    candidates = [connection for connection in connections if connection.number not in avoid] or connections
    if probe and not all(connection.suspect for connection in connections):
        for connection in candidates:
            if connection.probe_due(now):
                return connection
    newest = max(connection.newest_answered for connection in connections)
    return min(
        candidates,
        key=lambda each: (
            each.suspect,
            not each.ready,
            each.lags(newest, patience),
            each.out,
            each.last_sent,
        ),
    )


def lag_patience(settings: HedgingSettings | None) -> float:
    """Returns the seconds after which a connection lags: never without hedging, which says what late means."""
    return math.inf if settings is None else seconds(settings.hedge_delay) * _PATIENCE_RATIO
