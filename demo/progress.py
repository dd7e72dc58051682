"""A line that shows how far a run is."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from beam_hedge.testing import Ledger

_WIDTH = 30
_TERMINAL_S = 0.1
_PLAIN_S = 2.0


class Progress:
    """Prints how many messages the server has stored.

    In a terminal it is one line that changes, elsewhere a new line every 2 s.

    Args:
        total: How many messages there are to publish; duplicates come on top.
        output: Where to print. Default: standard output.
    """

    def __init__(self, total: int, output: TextIO | None = None) -> None:
        self._total = total
        self._output = output or sys.stdout
        self._terminal = self._output.isatty()
        self._start = self._shown = time.monotonic()

    def show(self, ledger: Ledger, *, last: bool = False) -> None:
        """Prints the state, if the last time is long enough ago.

        Args:
            ledger: The server's counts.
            last: Whether this is the final state, which is always printed.
        """
        now = time.monotonic()
        if not last and now - self._shown < (_TERMINAL_S if self._terminal else _PLAIN_S):
            return
        self._shown = now
        line = f"   {now - self._start:5.1f} s  {self._state(ledger)}"
        # Padded, so that a shorter line covers a longer one.
        self._output.write(f"\r{line:<100}" if self._terminal else line)
        if last or not self._terminal:
            self._output.write("\n")
        self._output.flush()

    def _state(self, ledger: Ledger) -> str:
        if not ledger.requests:
            return "the pipeline is starting"
        if ledger.messages >= self._total and not ledger.open:
            return f"{ledger.messages:,} messages in {ledger.requests:,} requests; the pipeline is ending"
        filled = min(_WIDTH, _WIDTH * ledger.messages // self._total)
        waiting = f", {ledger.open} waiting for an answer" if ledger.open else ""
        return (
            f"[{'#' * filled:<{_WIDTH}}] {ledger.messages:,} messages in {ledger.requests:,} requests{waiting}"
        )
