"""What a soak came to: its seconds, its accounts, and the promises that were broken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from array import array

    from benchmarks.soaking.ledger import Books
    from benchmarks.soaking.watch import Usage


@dataclass(frozen=True)
class Second:
    """What there was in about a second.

    Attributes:
        usage: At its end.
        fault: What went wrong in it.
        messages: Messages that were acknowledged.
        hedges: Hedges of which callers were told.
        p50_ms: The median latency of what was published; `None` if nothing was.
        p99_ms: The 99th percentile.
    """

    usage: Usage
    fault: str
    messages: int
    hedges: int
    p50_ms: float | None
    p99_ms: float | None


@dataclass
class Findings:
    """What a soak came to.

    Attributes:
        seconds: Each second of it.
        phases: When each fault began and ended, with its name.
        latencies_ms: Of what was published, by fault.
        books: The account of each publisher at the end.
        hedges: Hedges that arrived at the service, by publisher.
        copies: Messages that are stored more than once.
        violations: Broken promises, in words.
    """

    seconds: list[Second] = field(default_factory=list)
    phases: list[tuple[float, float, str]] = field(default_factory=list)
    latencies_ms: dict[str, array[float]] = field(default_factory=dict)
    books: dict[str, Books] = field(default_factory=dict)
    hedges: dict[str, int] = field(default_factory=dict)
    copies: int = 0
    violations: list[str] = field(default_factory=list)

    def object_to(self, violations: list[str]) -> None:
        """Adds violations, each kind once."""
        known = {_kind(each) for each in self.violations}
        self.violations += [each for each in violations if _kind(each) not in known]


def _kind(violation: str) -> str:
    """Returns a violation without its numbers."""
    return "".join(each for each in violation if not each.isdigit())
