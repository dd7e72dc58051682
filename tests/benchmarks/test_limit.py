"""The limit that measured latencies are held against."""

from __future__ import annotations

import math

import pytest

from benchmarks.limit import limit


@pytest.mark.parametrize(
    ("times", "draws", "latencies", "attempts"),
    [
        # An answer that comes just when a hedge is due wins.
        ([0.0], [0.125], [0.125], [1]),
        # The hedge is quicker than the original, and one more is sent before it answers; then it is slower.
        ([0.0], [4.0, 0.25], [0.375], [3]),
        ([0.0], [0.25, 4.0], [0.25], [2]),
        # Attempts of different batches take the draws in the order in which they are sent.
        ([0.0, 0.0625], [1.0, 0.0, 0.0], [0.125, 0.0], [2, 1]),
    ],
)
def test_attempts_take_what_the_server_drew(
    times: list[float], draws: list[float], latencies: list[float], attempts: list[int]
) -> None:
    """The limit is what the same server could have given a publisher that wastes nothing."""
    assert limit(times, draws, 0.125) == (latencies, attempts)


def test_without_hedging_it_is_what_was_drawn() -> None:
    """The limit of a publisher that does not hedge is the server's own latency."""
    assert limit([0.0, 1.0], [0.5, 0.25], math.inf) == ([0.5, 0.25], [1, 1])
