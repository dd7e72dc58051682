"""Which connection an attempt takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.channels import choose_connection

_out = st.lists(st.integers(min_value=0, max_value=5), min_size=1, max_size=8)
_avoid = st.lists(st.integers(min_value=0, max_value=7), max_size=10)


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
    assert choose_connection(out, avoid) == chosen


@given(out=_out, avoid=_avoid)
def test_a_connection_to_avoid_is_taken_only_if_there_is_no_other(out: list[int], avoid: list[int]) -> None:
    """A connection that stalls holds one attempt of a batch as long as there is another connection."""
    chosen = choose_connection(out, avoid)
    others = set(range(len(out))) - set(avoid)
    assert chosen in (others or set(range(len(out))))
    assert out[chosen] == min(out[index] for index in (others or range(len(out))))


@given(out=_out)
def test_originals_are_spread_over_all_connections(out: list[int]) -> None:
    """Requests that are out at the same time are spread evenly over the connections."""
    for _ in range(10 * len(out)):
        out[choose_connection(out, ())] += 1
    assert max(out) - min(out) <= 1
