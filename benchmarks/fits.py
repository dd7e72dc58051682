"""Straight lines through measured points."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Line:
    """A line of least squares.

    Attributes:
        intercept: Its value at 0.
        slope: What it grows by.
        r_squared: The part of the points' variance that it explains; 1 if they all lie on it.
    """

    intercept: float
    slope: float
    r_squared: float

    def at(self, x: float) -> float:
        """Returns its value."""
        return self.intercept + self.slope * x


def fit(xs: Sequence[float], ys: Sequence[float]) -> Line:
    """Fits a line.

    Args:
        xs: At least two, not all equal.
        ys: As many.

    Raises:
        statistics.StatisticsError: The points determine no line.
    """
    slope, intercept = statistics.linear_regression(xs, ys)
    mean = statistics.fmean(ys)
    unexplained = sum((y - intercept - slope * x) ** 2 for x, y in zip(xs, ys, strict=True))
    variance = sum((y - mean) ** 2 for y in ys)
    return Line(intercept, slope, 1 - unexplained / variance if variance else 1.0)
