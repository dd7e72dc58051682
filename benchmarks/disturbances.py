"""What can happen to connections, as data: a programme says what begins when, on which of them.

A connection is told by its place among those that are open, in the order in which they were opened. What a
disturbance holds back is delivered later and in order, as TCP does it.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_RETRANSMISSION = 0.2
# Whatever the number of connections, from 1 to 8, all of them are hit alike.
_ROUND = 840


class Effect(Protocol):
    """What a disturbance does to bytes."""

    def passes_at(self, now: float, end: float, rng: random.Random) -> float:
        """Returns when bytes that come now are delivered.

        Args:
            now: The time, in seconds.
            end: When the disturbance ends.
            rng: What chance is taken from.
        """
        ...


@dataclass(frozen=True)
class Freeze:
    """Nothing gets through until the end; then all of it does at once, as from a proxy that hung."""

    def passes_at(self, now: float, end: float, rng: random.Random) -> float:  # noqa: ARG002, D102
        return end


@dataclass(frozen=True)
class BlackHole:
    """All packets are lost until the end. TCP sends again after 0.2 s and then after twice as long each time.

    So the first bytes that were lost arrive some time after the end, and the others behind them.
    """

    def passes_at(self, now: float, end: float, rng: random.Random) -> float:  # noqa: ARG002, D102
        wait = _FIRST_RETRANSMISSION
        sent = now + wait
        while sent < end:
            wait *= 2
            sent += wait
        return sent


@dataclass(frozen=True)
class Stalls:
    """Some reads wait for a random time.

    Args:
        share: The part of the reads that do.
        least: Seconds.
        most: Seconds.
    """

    share: float = 0.05
    least: float = 0.05
    most: float = 0.5

    def passes_at(self, now: float, end: float, rng: random.Random) -> float:  # noqa: ARG002, D102
        return now + rng.uniform(self.least, self.most) if rng.random() < self.share else now


@dataclass(frozen=True)
class Swallow:
    """Bytes vanish, and the connection stays open for good: it is half-open."""

    def passes_at(self, now: float, end: float, rng: random.Random) -> float:  # noqa: ARG002, D102
        return math.inf


@dataclass(frozen=True)
class Disturbance:
    """One entry of a programme.

    Attributes:
        effect: What happens.
        at: When it begins, in seconds from the start of the programme.
        seconds: How long it lasts.
        connection: The place of the connection among those that are open at that time, counted round and
            round; `None` for all, and those that open meanwhile, too.
    """

    effect: Effect
    at: float = 0.0
    seconds: float = math.inf
    connection: int | None = 0


@dataclass(frozen=True)
class Brownout:
    """An entry of a programme that no connection is to blame for: the server itself is slow.

    Attributes:
        at: When it begins, in seconds from the start of the programme.
        seconds: How long it lasts.
        latency: The seconds that a request takes at least if it arrives meanwhile.
    """

    at: float
    seconds: float
    latency: float

    def at_least(self, now: float) -> float:
        """Returns the seconds that a request takes at least that arrives at `now`, on the programme's clock."""
        return self.latency if self.at <= now < self.at + self.seconds else 0.0


Programme = tuple[Disturbance | Brownout, ...]

PLACES = ("first", "alternate", "random")


def repeated(
    effect: Effect, duration: float, *, seconds: float, every: float, which: str, seed: int
) -> tuple[Disturbance, ...]:
    """Returns a programme that disturbs one connection again and again.

    Args:
        effect: What happens to it.
        duration: The seconds to fill.
        seconds: How long the effect lasts each time.
        every: The time from one beginning to the next; the first stretch is quiet.
        which: "first": always the connection that was opened first. "alternate": one after the other.
            "random": any.
        seed: The seed of "random".
    """
    rng = random.Random(seed)
    begins = itertools.takewhile(lambda at: at + seconds <= duration, itertools.count(every - seconds, every))
    return tuple(
        Disturbance(effect, at, seconds, _place(which, number, rng)) for number, at in enumerate(begins)
    )


def _place(which: str, number: int, rng: random.Random) -> int:
    if which == "random":
        return rng.randrange(_ROUND)
    return number if which == "alternate" else 0


class Clock(Protocol):
    """What a lane needs of an event loop."""

    def time(self) -> float:
        """Returns the time, in seconds."""
        ...

    def call_at(self, when: float, callback: Callable[[], object], /) -> object:
        """Has a callback run at a time."""
        ...


class Lane:
    """One direction of a connection: hands bytes on in order, at once or when its effect says.

    Args:
        clock: The event loop that it lives on.
        rng: What chance is taken from.
        deliver: What takes the bytes in the end.
    """

    def __init__(self, clock: Clock, rng: random.Random, deliver: Callable[[bytes], object]) -> None:
        self._clock = clock
        self._rng = rng
        self._deliver = deliver
        self._held: list[bytes] = []
        self._effects: list[tuple[Effect, float]] = []

    def disturb(self, effect: Effect, end: float) -> None:
        """Applies an effect to what comes from now on until `end`."""
        self._effects.append((effect, end))

    def carry(self, data: bytes) -> None:
        """Takes bytes."""
        if self._held:
            # Whatever holds the bytes before these holds them, too.
            self._held.append(data)
            return
        if self._effects:
            now = self._clock.time()
            self._effects = [(effect, end) for effect, end in self._effects if end > now]
            passes = [effect.passes_at(now, end, self._rng) for effect, end in self._effects]
            if passes and max(passes) > now:
                self._held.append(data)
                if max(passes) < math.inf:
                    self._clock.call_at(max(passes), self._release)
                return
        self._deliver(data)

    def _release(self) -> None:
        held = b"".join(self._held)
        self._held.clear()
        # In one piece, as a socket gives it. Another effect may have begun meanwhile.
        self.carry(held)
