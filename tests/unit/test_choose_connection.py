"""Which connection an attempt takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.connection import Connection, choose_connection

_out = st.lists(st.integers(min_value=0, max_value=5), min_size=1, max_size=8)
_avoid = st.lists(st.integers(min_value=0, max_value=7), max_size=10)
NOW, PATIENCE = 100.0, 0.1


@dataclass(frozen=True)
class State:
    """What one connection of a case is like; the default is one that nothing speaks against.

    `late` is one that owes an answer to a request sent one second ago.
    """

    suspect: bool = False
    ready: bool = True
    late: bool = False
    out: int = 0
    sent: float = NOW - 5
    probe_due: bool = False

    def make(self, number: int) -> Connection:
        """Makes such a connection."""
        connection = Connection(number)
        connection.ready = self.ready
        for request in range(self.out):
            connection.sent(request, NOW - 0.05)
        if self.late:
            connection = Connection(number)
            connection.ready = self.ready
            connection.sent("late", NOW - 1)
        if self.suspect or self.probe_due:
            connection.sent("overdue", NOW - (2 if self.probe_due else 0.5))
            assert connection.overdue("overdue", NOW - (1 if self.probe_due else 0.5))
            connection.ended("overdue", expired=False)
        connection.last_sent = self.sent
        # A request that was sent not long ago has its answer here: what lags, lags behind this.
        connection.newest_answered = NOW - 0.2
        return connection


def choose(*states: State, avoid: tuple[int, ...] = (), probe: bool = False, patience: float = PATIENCE) -> int:
    """Chooses among such connections; returns the number."""
    connections = [state.make(number) for number, state in enumerate(states)]
    return choose_connection(connections, avoid, now=NOW, probe=probe, patience=patience).number


def loaded(*out: int) -> list[Connection]:
    """Makes connections that differ by what they have out."""
    return [State(out=each).make(number) for number, each in enumerate(out)]


@pytest.mark.parametrize(
    ("out", "avoid", "chosen"),
    [
        ([0], (), 0),
        ([5], (0,), 0),
        ([3, 1, 2], (), 1),
        ([3, 1, 2], (1,), 2),
        ([3, 1, 2], (1, 2), 0),
        ([3, 1, 2], (0, 1, 2), 1),
        ([2, 2, 2], (), 0),
        ([2, 2, 2], (0,), 1),
        ([0, 9], (0, 0, 0), 1),
    ],
)
def test_the_least_loaded_of_the_others_is_taken(out: list[int], avoid: tuple[int, ...], chosen: int) -> None:
    """A hedge goes where its batch is not yet, and among those to where the fewest requests are."""
    assert choose_connection(loaded(*out), avoid, now=NOW).number == chosen


BETTER_FIRST = [
    State(sent=NOW - 9),
    State(sent=NOW - 1),
    State(out=2, sent=NOW - 9),
    State(late=True, out=0, sent=NOW - 9),
    State(ready=False, sent=NOW - 9),
    State(suspect=True, sent=NOW - 9),
    State(suspect=True, ready=False, sent=NOW - 9),
]


@pytest.mark.parametrize("better", range(len(BETTER_FIRST) - 1))
def test_what_matters_most_comes_first(better: int) -> None:
    """Trusted, then ready, then not lagging, then fewest out, then longest rested; whatever their places."""
    order = BETTER_FIRST[better:]
    assert choose(*order) == 0
    assert choose(*reversed(order)) == len(order) - 1


@pytest.mark.parametrize("worse", BETTER_FIRST[1:])
def test_to_avoid_a_connection_comes_before_all_else(worse: State) -> None:
    """A hedge goes to a connection that looks bad before it shares the one of its batch."""
    assert choose(State(), worse, avoid=(0,)) == 1
    assert choose(worse, State(), avoid=(1,)) == 0


def test_without_patience_nothing_lags() -> None:
    """Without hedging, which says what late means, only what is out counts."""
    assert choose(State(late=True), State(out=2)) == 1
    assert choose(State(late=True), State(out=2), patience=math.inf) == 0


def test_a_probe_takes_the_suspect_whose_time_has_come() -> None:
    """A connection that works again is found by real traffic, which its hedge makes safe."""
    trusted, due, not_due = State(), State(probe_due=True), State(suspect=True)
    assert choose(trusted, due, probe=True) == 1
    assert choose(trusted, due, probe=False) == 0
    assert choose(trusted, not_due, probe=True) == 0
    assert choose(trusted, not_due, due, probe=True) == 2


def test_a_probe_does_not_take_a_connection_to_avoid() -> None:
    """To try a connection is no reason to share it with an attempt of the same batch."""
    assert choose(State(), State(probe_due=True), avoid=(1,), probe=True) == 0


def test_when_all_are_suspect_there_is_nothing_to_probe() -> None:
    """When the server is slow, requests are spread as if all connections were trusted."""
    due = State(probe_due=True, out=3, sent=NOW - 9)
    assert choose(due, State(suspect=True), probe=True) == 1
    assert choose(State(suspect=True, out=1), due, State(suspect=True), probe=True) == 2


@given(out=_out, avoid=_avoid)
def test_a_connection_to_avoid_is_taken_only_if_there_is_no_other(out: list[int], avoid: list[int]) -> None:
    """A connection that stalls holds one attempt of a batch as long as there is another connection."""
    chosen = choose_connection(loaded(*out), avoid, now=NOW).number
    others = set(range(len(out))) - set(avoid)
    assert chosen in (others or set(range(len(out))))
    assert out[chosen] == min(out[index] for index in (others or range(len(out))))


@given(out=_out)
def test_originals_are_spread_over_all_connections(out: list[int]) -> None:
    """Requests that are out at the same time are spread evenly over the connections."""
    connections = loaded(*out)
    for request in range(10 * len(out)):
        choose_connection(connections, now=NOW).sent(("more", request), NOW)
    assert max(each.out for each in connections) - min(each.out for each in connections) <= 1


def test_connections_that_are_idle_take_turns() -> None:
    """Traffic that is never more than one request at a time keeps every connection known to work."""
    connections = loaded(0, 0, 0)
    taken = []
    for second in range(6):
        chosen = choose_connection(connections, now=NOW + second)
        taken.append(chosen.number)
        chosen.sent(second, NOW + second)
        chosen.answered(second, NOW + second + 0.01)
    assert taken == [0, 1, 2, 0, 1, 2]
