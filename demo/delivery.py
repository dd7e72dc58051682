"""Which of the published lines a topic holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Delivery:
    """What became of the lines of a file.

    Attributes:
        lost: Lines that the topic does not hold.
        duplicates: Further copies of lines that it holds.
        foreign: Messages that are no line of the file.
    """

    lost: int
    duplicates: int
    foreign: int


def compare(lines: Iterable[bytes], stored: Iterable[bytes]) -> Delivery:
    """Compares what was to be published with what a topic holds, by content.

    Args:
        lines: The lines of the file.
        stored: The data of the topic's messages.

    Returns:
        The differences. A line that the file holds twice is lost once if the topic holds it once.
    """
    wanted, held = Counter(lines), Counter(stored)
    surplus = held - wanted
    duplicates = sum(copies for line, copies in surplus.items() if line in wanted)
    return Delivery(lost=(wanted - held).total(), duplicates=duplicates, foreign=surplus.total() - duplicates)
