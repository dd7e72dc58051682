"""Rules for choosing a connection that were tried and rejected, and a way to put them in place.

Each has the signature of `beam_hedge.connection.choose_connection`. All of them keep a batch's attempts
apart, as the library does; they differ in what they do with the rest.
"""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest import mock

from beam_hedge import channels, connection

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from beam_hedge.connection import C


_rng = random.Random(0)


def _apart(connections: Sequence[C], avoid: Collection[int]) -> Sequence[C]:
    return [each for each in connections if each.number not in avoid] or connections


def round_robin(connections: Sequence[C], avoid: Collection[int], **_state: object) -> C:
    """Takes the one that has rested longest."""
    return min(_apart(connections, avoid), key=lambda each: each.last_sent)


def any_one(connections: Sequence[C], avoid: Collection[int], **_state: object) -> C:
    """Takes any, by chance."""
    return _rng.choice(_apart(connections, avoid))


def least_loaded(connections: Sequence[C], avoid: Collection[int], **_state: object) -> C:
    """Takes the one with the fewest requests out, and the first of several."""
    return min(_apart(connections, avoid), key=lambda each: each.out)


def two_choices(connections: Sequence[C], avoid: Collection[int], **_state: object) -> C:
    """Takes two by chance, and the one of them with fewer requests out."""
    candidates = _apart(connections, avoid)
    return min(_rng.sample(candidates, min(2, len(candidates))), key=lambda each: each.out)


def trusted_in_turn(
    connections: Sequence[C], avoid: Collection[int], *, now: float, probe: bool, **_state: object
) -> C:
    """Avoids a connection with an overdue attempt, and of the rest takes the one that has rested longest."""
    return _trusted(connections, avoid, now, probe=probe, rank=lambda each: each.last_sent)


def trusted_least_loaded(
    connections: Sequence[C], avoid: Collection[int], *, now: float, probe: bool, **_state: object
) -> C:
    """Avoids a connection with an overdue attempt, and of the rest takes the least loaded."""
    return _trusted(connections, avoid, now, probe=probe, rank=lambda each: each.out)


def _trusted(
    connections: Sequence[C], avoid: Collection[int], now: float, *, probe: bool, rank: Callable[[C], float]
) -> C:
    candidates = _apart(connections, avoid)
    if probe and not all(each.suspect for each in connections):
        for each in candidates:
            if each.probe_due(now):
                return each
    return min(candidates, key=lambda each: (each.suspect, rank(each)))


@contextmanager
def in_place(rule: Callable[..., object] | None) -> Iterator[None]:
    """Has publishers choose connections by another rule; `None` keeps the library's."""
    with mock.patch.object(channels, "choose_connection", rule or connection.choose_connection):
        yield
