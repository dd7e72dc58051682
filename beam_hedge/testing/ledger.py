"""The server's books: how many publish calls there were, how they ended, and what was stored."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class Ledger:
    """Publish calls and what became of them. Always: requests = answered + failed + cancelled + still open.

    Attributes:
        requests: Calls that arrived.
        hedges: Those whose telemetry header says that they are hedges.
        request_bytes: Their size, in bytes of encoded requests.
        answered: Calls answered with status OK.
        failed: Calls answered with an error, by the name of its status.
        cancelled: Calls that ended without an answer.
        open: Calls that are still in the server.
        messages: Messages stored.
    """

    requests: int = 0
    hedges: int = 0
    request_bytes: int = 0
    answered: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    cancelled: int = 0
    open: int = 0
    messages: int = 0

    def __str__(self) -> str:
        failed = ", ".join(f"{number} {name}" for name, number in sorted(self.failed.items())) or "0"
        return (
            f"requests {self.requests} (hedges {self.hedges}), answered {self.answered}, failed {failed}, "
            f"cancelled {self.cancelled}, open {self.open}; messages stored {self.messages}"
        )


class Books:
    """Counts, for each topic, with little work for each call.

    Owned by the publish service and used by all its handlers; the lock guards the counts. It is reentrant, so
    that a condition that somebody waits for may ask for a ledger.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._counts: dict[str, Counter[str]] = {}
        self._failed: dict[str, Counter[str]] = {}

    def begin(self, topic: str, size: int, *, hedge: bool) -> None:
        """Counts a call that has arrived."""
        with self._changed:
            counts = self._counts.setdefault(topic, Counter())
            counts["requests"] += 1
            counts["hedges"] += hedge
            counts["request_bytes"] += size
            self._changed.notify_all()

    def store(self, topic: str, messages: int) -> None:
        """Counts messages that were stored."""
        with self._changed:
            self._counts[topic]["messages"] += messages
            self._changed.notify_all()

    def end(self, topic: str, status: Any) -> None:
        """Counts a call that has ended; a status of None is no answer."""
        with self._changed:
            if status is None:
                self._counts[topic]["cancelled"] += 1
            elif status.name == "OK":
                self._counts[topic]["answered"] += 1
            else:
                self._failed.setdefault(topic, Counter())[status.name] += 1
            self._changed.notify_all()

    def ledger(self, topic: str | None = None) -> Ledger:
        """Returns the counts of one topic, or of all."""
        with self._changed:
            return self._ledger(topic)

    def wait_for(self, condition: Callable[[Ledger], bool], topic: str | None, timeout: float) -> Ledger:
        """Waits until the counts of one topic, or of all, fulfil a condition."""
        deadline = monotonic() + timeout
        with self._changed:
            while not condition(ledger := self._ledger(topic)):
                if not self._changed.wait(deadline - monotonic()):
                    raise TimeoutError(f"not so after {timeout:g} s; {ledger}")
            return ledger

    def _ledger(self, topic: str | None) -> Ledger:
        counts: Counter[str] = Counter()
        failed: Counter[str] = Counter()
        for name in self._counts if topic is None else (topic,):
            counts.update(self._counts.get(name, {}))
            failed.update(self._failed.get(name, {}))
        ended = counts["answered"] + counts["cancelled"] + failed.total()
        return replace(Ledger(), **counts, failed=dict(failed), open=counts["requests"] - ended)
