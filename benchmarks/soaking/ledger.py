"""What callers of one publisher handed over, and what they were told of it.

A byte for each message and eight for each batch: two or three megabytes in ten minutes, so that what a soak
keeps is not mistaken for what the library keeps.
"""

from __future__ import annotations

import enum
import threading
import time
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.soaking.messages import pack

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beam_hedge import PublishError, PublishOutcome


class Fate(enum.IntEnum):
    """What a caller knows of a message."""

    OUT = 0
    ACKNOWLEDGED = 1
    FAILED = 2
    DEAD_LETTER = 3
    CANCELLED = 4


@dataclass
class Books:
    """A ledger at one moment.

    Attributes:
        inputs: Messages that were handed over.
        told: Messages by what their callers were told.
        out: Messages of which their callers were not told yet.
        marked_out: The same, counted message by message.
        told_again: How often somebody was told of a message for a second time.
        misreported: Messages of which the sink's outcomes and its bundle's end say different things.
        oldest: Seconds for which the longest wait has lasted.
        hedges: Hedges of which callers were told.
        published: Requests that callers were told are published.
        perhaps: Batches that may have been published without anybody being told: their callers cancelled
            them, or their bundle failed for another one's sake.
        failed_tries: Bundles that failed, each of which was tried again.
    """

    inputs: int = 0
    told: Counter[Fate] = field(default_factory=Counter)
    out: int = 0
    marked_out: int = 0
    told_again: int = 0
    misreported: int = 0
    oldest: float = 0.0
    hedges: int = 0
    published: int = 0
    perhaps: int = 0
    failed_tries: int = 0


class Ledger:
    """The account of one publisher's callers. Safe for concurrent use: a lock is held while it changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._books = Books()
        self._fates: dict[int, bytearray] = {}
        self._waits: dict[tuple[int, int], float] = {}
        self._acknowledged = array("q")
        self._latencies_ms = array("d")

    def hand_over(self, producer: int, count: int) -> range:
        """Notes that messages are about to be published; returns their numbers."""
        with self._lock:
            fates = self._fates.setdefault(producer, bytearray())
            numbers = range(len(fates), len(fates) + count)
            fates.extend(bytes(count))
            self._books.inputs += count
            self._books.out += count
            self._waits[producer, numbers[0]] = time.monotonic()
        return numbers

    def wait_again(self, producer: int, numbers: range) -> None:
        """Notes that a failed bundle is tried again, which is a wait of its own."""
        with self._lock:
            self._waits[producer, numbers[0]] = time.monotonic()
            self._books.failed_tries += 1
            self._books.perhaps += len(numbers)

    def tell(self, producer: int, numbers: range, fate: Fate, *, apart: Sequence[int] = ()) -> None:
        """Notes what a caller was told of messages that were handed over together.

        Args:
            producer: Whose.
            numbers: Which.
            fate: What they came to.
            apart: Those of them that are dead letters instead.
        """
        with self._lock:
            fates = self._fates[producer]
            self._waits.pop((producer, numbers[0]), None)
            for number in numbers:
                mine = Fate.DEAD_LETTER if number in apart else fate
                self._books.told_again += fates[number] != Fate.OUT
                fates[number] = mine
                self._books.told[mine] += 1
                if mine is Fate.ACKNOWLEDGED:
                    self._acknowledged.append(pack(producer, number))
            self._books.out -= len(numbers)
            if fate is Fate.CANCELLED:
                self._books.perhaps += 1

    def note(self, results: Iterable[PublishOutcome | PublishError], *, messages: int | None = None) -> None:
        """Notes what callers were told of attempts.

        Args:
            results: Outcomes, or the errors of batches.
            messages: How many messages the outcomes must hold. Default: as many as they do.
        """
        with self._lock:
            held = 0
            for result in results:
                self._books.hedges += result.hedges
                latency = getattr(result, "latency", None)
                if latency is not None:
                    held += result.messages
                    self._books.published += not result.shared
                    self._latencies_ms.append(1000 * latency)
            if messages is not None:
                self._books.misreported += abs(held - messages)

    def books(self) -> Books:
        """Returns the account as it is now."""
        with self._lock:
            now = time.monotonic()
            mine = self._books
            oldest = max((now - since for since in self._waits.values()), default=0.0)
            marked = sum(fates.count(Fate.OUT) for fates in self._fates.values())
            return Books(**{**mine.__dict__, "told": mine.told.copy(), "oldest": oldest, "marked_out": marked})

    def take_acknowledged(self) -> array[int]:
        """Returns the packed ids of what was acknowledged since the last call."""
        with self._lock:
            taken, self._acknowledged = self._acknowledged, array("q")
        return taken

    def take_latencies(self) -> array[float]:
        """Returns the latencies in ms of what was published since the last call."""
        with self._lock:
            taken, self._latencies_ms = self._latencies_ms, array("d")
        return taken
