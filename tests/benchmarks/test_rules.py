"""The rules that the library's own is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from beam_hedge import channels
from beam_hedge.connection import Connection, choose_connection
from benchmarks import rules

if TYPE_CHECKING:
    from collections.abc import Callable

RULES = [
    rules.any_one,
    rules.least_loaded,
    rules.round_robin,
    rules.trusted_in_turn,
    rules.trusted_least_loaded,
    rules.two_choices,
]


def choose(rule: Callable[..., Connection], connections: list[Connection], *avoid: int) -> int:
    """Returns the number of the connection that a rule takes."""
    return rule(connections, avoid, now=10.0, probe=True, patience=0.01).number


def connections(number: int) -> list[Connection]:
    """Returns idle connections, of which the first was used last."""
    made = [Connection(each) for each in range(number)]
    for each in reversed(made):
        each.sent("request", now=10.0 - each.number)
        each.answered("request", now=10.0)
    return made


@pytest.mark.parametrize("rule", RULES)
def test_all_of_them_keep_attempts_apart(rule: Callable[..., Connection]) -> None:
    """The rules differ in what they do with originals; a hedge is worth the same with each."""
    assert {choose(rule, connections(3), 0, 2) for _ in range(20)} == {1}
    assert choose(rule, connections(1), 0) == 0


def test_each_does_what_its_name_says() -> None:
    """A rule that was rejected was rejected for what it is."""
    three = connections(3)
    assert choose(rules.round_robin, three) == 2
    three[2].sent("request", now=10.0)
    assert choose(rules.round_robin, three) == 1
    assert choose(rules.least_loaded, three) == 0
    assert {choose(rules.any_one, three) for _ in range(100)} == {0, 1, 2}
    # Of any two, the third is never the less loaded one.
    assert {choose(rules.two_choices, three) for _ in range(100)} == {0, 1}
    three[1].sent("late", now=10.0)
    three[1].overdue("late", now=10.0)
    assert choose(rules.trusted_in_turn, three) in {0, 2}
    assert choose(rules.trusted_least_loaded, three) == 0
    # Idle and suspect: it was given up and has not answered since.
    three[1].ended("late", expired=False)
    three[0].sent("request", now=10.0)
    assert choose(rules.least_loaded, three) == 1
    assert choose(rules.trusted_least_loaded, three) in {0, 2}


def test_a_rule_is_in_place_only_while_it_is_measured() -> None:
    """The row of the library is measured with the library's own rule."""
    before = channels.choose_connection  # type: ignore[attr-defined]
    with rules.in_place(rules.round_robin):
        assert channels.choose_connection is rules.round_robin  # type: ignore[attr-defined]
    with rules.in_place(None):
        assert channels.choose_connection is choose_connection  # type: ignore[attr-defined]
    assert channels.choose_connection is before  # type: ignore[attr-defined]
