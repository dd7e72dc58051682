"""What happens to connections in a benchmark, in virtual time."""

from __future__ import annotations

import math
import random

import pytest

from beam_hedge.testing import FakeClock
from benchmarks.disturbances import BlackHole, Freeze, Lane, Stalls, Swallow, repeated


class Traffic:
    """A lane, and when bytes came out of it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.out: list[tuple[float, bytes]] = []
        self.lane = Lane(
            self.clock, random.Random(0), lambda data: self.out.append((round(self.clock.time(), 3), data))
        )

    def carry(self, *pieces: bytes, every: float = 0.1) -> None:
        """Sends pieces, one after the other."""
        for piece in pieces:
            self.lane.carry(piece)
            self.clock.advance(every)


def test_an_undisturbed_lane_hands_on_at_once() -> None:
    """What is measured without a disturbance is not disturbed."""
    traffic = Traffic()
    traffic.carry(b"a", b"b")
    assert traffic.out == [(0.0, b"a"), (0.1, b"b")]


def test_a_freeze_holds_back_and_loses_nothing() -> None:
    """A frozen connection delivers all when it thaws, in order."""
    traffic = Traffic()
    traffic.lane.disturb(Freeze(), 0.25)
    traffic.carry(b"a", b"b", b"c", b"d")
    assert traffic.out == [(0.25, b"abc"), (0.3, b"d")]


def test_a_disturbance_ends() -> None:
    """What comes after the end of a disturbance is not touched by it."""
    traffic = Traffic()
    traffic.lane.disturb(Swallow(), 0.5)
    traffic.clock.advance(0.5)
    traffic.carry(b"a")
    assert traffic.out == [(0.5, b"a")]


def test_a_second_freeze_begins_before_the_first_ends() -> None:
    """What one disturbance lets go of, another one may still hold."""
    traffic = Traffic()
    traffic.lane.disturb(Freeze(), 0.2)
    traffic.carry(b"a")
    traffic.lane.disturb(Freeze(), 0.5)
    traffic.carry(b"b", every=1)
    assert traffic.out == [(0.5, b"ab")]


@pytest.mark.parametrize(
    ("begin", "end", "arrives"), [(0.0, 0.1, 0.2), (0.0, 0.2, 0.2), (0.0, 2.0, 3.0), (1.9, 2.0, 2.1)]
)
def test_lost_packets_are_sent_again_later_and_later(begin: float, end: float, arrives: float) -> None:
    """After a path is back, what it has lost arrives as TCP sends it again: after 0.2, 0.6, 1.4, 3.0 s."""
    assert BlackHole().passes_at(begin, end, random.Random(0)) == pytest.approx(arrives)


def test_swallowed_bytes_are_gone_for_good() -> None:
    """A half-open connection stays silent."""
    traffic = Traffic()
    traffic.lane.disturb(Swallow(), math.inf)
    traffic.carry(b"a", b"b", every=1000)
    assert traffic.out == []


def test_stalls_hit_some_reads_and_keep_the_order() -> None:
    """Random stalls delay a share of the reads within their bounds, and turn nothing round."""
    traffic = Traffic()
    traffic.lane.disturb(Stalls(share=0.3, least=0.15, most=0.4), math.inf)
    pieces = [bytes([number]) for number in range(200)]
    traffic.carry(*pieces)
    traffic.clock.advance(10)
    assert b"".join(data for _, data in traffic.out) == b"".join(pieces)
    # A piece that waited came out with those that came meanwhile.
    assert 20 < sum(len(data) > 1 for _, data in traffic.out) < 80


@pytest.mark.parametrize(("which", "places"), [("first", [0, 0, 0]), ("alternate", [0, 1, 2])])
def test_a_programme_says_when_and_where(which: str, places: list[int]) -> None:
    """The stalls of the table are those that its text names: 1 s, every 3 s, on the connection named."""
    programme = repeated(Freeze(), 9, seconds=1, every=3, which=which, seed=0)
    assert [(each.at, each.seconds) for each in programme] == [(2, 1), (5, 1), (8, 1)]
    assert [each.connection for each in programme] == places


def test_a_random_programme_is_its_seeds() -> None:
    """A run can be repeated with the same disturbances."""
    one, same, other = (
        repeated(Freeze(), 60, seconds=1, every=3, which="random", seed=seed) for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other
