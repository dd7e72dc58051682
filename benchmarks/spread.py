"""Several runs of the same thing as one figure: the median, with the least and the most beside it."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from benchmarks.report import Column

if TYPE_CHECKING:
    from collections.abc import Sequence


def spread(key: str, values: Sequence[float]) -> dict[str, float]:
    """Returns what `columns` shows of the runs' values.

    Args:
        key: What the value is called in rows.
        values: One of each run; at least one.
    """
    return {key: statistics.median(values), f"{key}_least": min(values), f"{key}_most": max(values)}


def columns(key: str, heading: str, form: str) -> tuple[Column, Column, Column]:
    """Returns the columns of a median, a minimum and a maximum.

    Args:
        key: What the value is called in rows.
        heading: What stands above the median.
        form: How a value is written.
    """
    return Column(key, heading, form), Column(f"{key}_least", "min", form), Column(f"{key}_most", "max", form)
