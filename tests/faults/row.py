"""One row of the fault matrix: what became of the messages that were published while something went wrong."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

# Names the file that rows are added to, one JSON object a line. Without it they are only checked.
ROWS_VARIABLE = "BEAM_HEDGE_FAULT_ROWS"
_SHOWN = 5


@dataclass(frozen=True)
class Row:
    """One fault, and what it did.

    Attributes:
        section: The table that it belongs to.
        fault: What went wrong, for a reader of the table.
        test: The node id of the test.
        messages: How many messages were published.
        acknowledged: How many of them the caller was told are published.
        failed: How many of them the caller was told are not.
        dead_lettered: How many of them came out as dead letters.
        lost: How many of them are neither, or acknowledged and not stored.
        duplicated: How many copies are stored beyond the first of each message.
        hedges: How many hedges were sent.
        recovery: Seconds from the end of the fault until all was as before; `None` if that means nothing.
    """

    section: str
    fault: str
    test: str
    messages: int
    acknowledged: int
    failed: int
    dead_lettered: int
    lost: int
    duplicated: int
    hedges: int
    recovery: float | None


class Matrix:
    """Checks what a test saw, and makes a row of it.

    Args:
        test: The node id of the test.
    """

    def __init__(self, test: str) -> None:
        self._test = test
        self._began = time.monotonic()

    def row(
        self,
        fault: str,
        *,
        section: str,
        inputs: Collection[bytes],
        acknowledged: Collection[bytes],
        failed: Collection[bytes] = (),
        dead_lettered: Collection[bytes] = (),
        stored: Sequence[bytes],
        hedges: int,
        recovery: float | None = None,
    ) -> Row:
        """Accounts for every message.

        Args:
            fault: What went wrong, for a reader of the table.
            section: The table that the row belongs to.
            inputs: The messages that were published, each different from the others.
            acknowledged: Those that the caller was told are published.
            failed: Those that the caller was told are not.
            dead_lettered: Those that came out as dead letters.
            stored: What the service holds at the end, copies included. What is no input is not looked at.
            hedges: How many hedges were sent.
            recovery: Seconds from the end of the fault until all was as before.

        Returns:
            The row.

        Raises:
            AssertionError: A message is lost, or the caller was told two things of one, or something of a
                message that it did not publish.
        """
        published = Counter(inputs)
        assert set(published.values()) <= {1}, "no two inputs may be the same"
        told = Counter(acknowledged) + Counter(failed) + Counter(dead_lettered)
        copies = Counter(data for data in stored if data in published)
        untold = set(published - told)
        vanished = set(acknowledged) - set(copies)
        row = Row(
            section=section,
            fault=fault,
            test=self._test,
            messages=len(inputs),
            acknowledged=len(acknowledged),
            failed=len(failed),
            dead_lettered=len(dead_lettered),
            lost=len(untold | vanished),
            duplicated=copies.total() - len(copies),
            hedges=hedges,
            recovery=recovery,
        )
        assert not untold, f"the caller was told nothing of {_some(untold)}"
        assert not vanished, f"acknowledged, and not stored: {_some(vanished)}"
        assert told == published, f"the caller was told too much of {_some(told - published)}"
        self._add(row)
        return row

    def _add(self, row: Row) -> None:
        path = os.environ.get(ROWS_VARIABLE)
        if path:
            seconds = time.monotonic() - self._began
            line = json.dumps({**asdict(row), "seconds": seconds}) + "\n"
            # One write at the end of the file: tests of several processes may share it.
            with Path(path).open("ab", buffering=0) as file:
                file.write(line.encode())


def _some(messages: Iterable[bytes]) -> str:
    ordered = sorted(messages)
    more = f" and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    return f"{ordered[:_SHOWN]}{more}"
