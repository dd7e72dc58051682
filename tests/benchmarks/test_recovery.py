"""When a run counts as recovered."""

from __future__ import annotations

import math

import pytest

from benchmarks.connections.outage import recovery
from benchmarks.load import Run, Sent


@pytest.mark.parametrize(
    ("slow", "seconds"),
    [(range(0), 0.0), (range(500, 506), 0.1), (range(525, 526), 0.0), (range(500, 540), 0.4)],
)
def test_it_has_when_the_median_is_good_for_good(slow: range, seconds: float) -> None:
    """One slow request is no relapse, and a quick one is no recovery."""
    run = Run([Sent(number / 100, 1.0 if number in slow else 0.005, 0.0, None) for number in range(1000)])
    assert recovery(run, 5.0, most=0.01) == pytest.approx(seconds)


def test_a_run_can_end_before() -> None:
    """What has not recovered does not look like it had."""
    run = Run([Sent(number / 100, 1.0, 0.0, None) for number in range(300)])
    assert recovery(run, 1.0, most=0.01) == math.inf
