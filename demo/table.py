"""The two runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demo.result import percentile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demo.result import Result
    from demo.stall import StallRun

_PERCENTILES = (50, 90, 99)
_SECOND = 1000


def table(plain: Result, hedged: Result) -> str:
    """Returns a table of two runs over the same data.

    Args:
        plain: The run without hedging.
        hedged: The run with hedging.
    """
    return _side_by_side(("without hedging", _cells(plain)), ("with hedging", _cells(hedged)))


def stall_table(runs: Mapping[int, StallRun]) -> str:
    """Returns a table of two runs in which a connection froze.

    Args:
        runs: The runs, by how many connections they had.
    """
    one, two = (
        (f"{connections} connection{'s' * (connections > 1)}", _stall_cells(run))
        for connections, run in runs.items()
    )
    return _side_by_side(one, two)


def shown(milliseconds: float) -> str:
    """Returns a latency as text, to three digits, in ms below a second."""
    if milliseconds >= _SECOND:
        return f"{milliseconds / _SECOND:.2f} s"
    return f"{milliseconds:.0f} ms" if milliseconds >= _SECOND / 10 else f"{milliseconds:.1f} ms"


def _side_by_side(*columns: tuple[str, dict[str, str]]) -> str:
    rows = [["", *(title for title, _ in columns)]]
    rows += [[label, *(cells[label] for _, cells in columns)] for label in columns[0][1]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["   ".join([f"{row[0]:<{widths[0]}}", *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _latency_cells(ascending: Sequence[float]) -> dict[str, str]:
    cells = {f"publish latency, p{p}": shown(percentile(ascending, p)) for p in _PERCENTILES}
    return {**cells, "publish latency, max": shown(ascending[-1])}


def _stall_cells(run: StallRun) -> dict[str, str]:
    sent = len(run.points)
    extra = run.requests - sent
    return {
        **_latency_cells(run.latencies_ms),
        "messages": f"{sent:,}",
        "extra requests": f"{extra:,} ({100 * extra / sent:.1f} %)",
        "lost messages": f"{run.lost:,}",
    }


def _cells(result: Result) -> dict[str, str]:
    latencies = result.latencies_ms
    batches = len(latencies)
    extra = result.requests - batches
    return {
        **_latency_cells(latencies),
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
