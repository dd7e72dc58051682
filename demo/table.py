"""The two runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demo.result import percentile

if TYPE_CHECKING:
    from demo.result import Result

_PERCENTILES = (50, 90, 99)
_SECOND = 1000


def table(plain: Result, hedged: Result) -> str:
    """Returns a table of two runs over the same data.

    Args:
        plain: The run without hedging.
        hedged: The run with hedging.
    """
    columns = [_cells(plain), _cells(hedged)]
    rows = [("", "without hedging", "with hedging")]
    rows += [(label, columns[0][label], columns[1][label]) for label in columns[0]]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"{row[0]:<{widths[0]}}   {row[1]:>{widths[1]}}   {row[2]:>{widths[2]}}" for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def shown(milliseconds: float) -> str:
    """Returns a latency as text, to three digits, in ms below a second."""
    if milliseconds >= _SECOND:
        return f"{milliseconds / _SECOND:.2f} s"
    return f"{milliseconds:.0f} ms" if milliseconds >= _SECOND / 10 else f"{milliseconds:.1f} ms"


def _cells(result: Result) -> dict[str, str]:
    latencies = result.latencies_ms
    batches = len(latencies)
    extra = result.requests - batches
    return {
        **{f"publish latency, p{p}": shown(percentile(latencies, p)) for p in _PERCENTILES},
        "publish latency, max": shown(latencies[-1]),
        "publishing, first request to last answer": f"{result.publishing_s:.1f} s",
        "whole program, starting Python and Beam included": f"{result.wall_s:.1f} s",
        "batches": f"{batches:,}",
        "requests": f"{result.requests:,}",
        "extra requests": f"{extra:,} ({100 * extra / batches:.1f} %)",
        "hedges sent": f"{result.hedges_sent:,}",
        "hedges won": f"{result.hedges_won:,}",
        "hedges throttled": f"{result.hedges_throttled:,}",
        "lost messages": f"{result.delivery.lost:,}",
        "duplicates": f"{result.delivery.duplicates:,}",
    }
