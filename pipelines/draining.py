"""Ending a stream on Beam's direct runner without losing what it has taken from its subscription.

The direct runner acknowledges messages when it pulls them, before they are processed, and its own `cancel()`
drops what is queued. It works on one pull after the other, on one thread. So after an interrupt the program
waits until the messages of the last pull are accounted for, holds that thread there, which keeps it from
pulling more, and ends.
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from pipelines.counters import TALLY

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from beam_hedge import PublishOutcome

_SIGNALS = ("SIGINT", "SIGTERM")


class Interrupted(BaseException):
    """Somebody asked the program to end.

    Attributes:
        status: The exit status that says so.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


class SettledFn(beam.DoFn):
    """The last step behind a sink: counts what has been published, in the process's own tally.

    Args:
        dead_letters: Whether the sink is that for dead letters.
    """

    def __init__(self, *, dead_letters: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Beam's has no annotations
        self._dead_letters = dead_letters

    def process(self, outcome: PublishOutcome) -> Iterator[Any]:
        """Yields nothing."""
        yield from ()
        if self._dead_letters:
            TALLY.add({"dead_letters_published": outcome.messages})
        else:
            TALLY.add(_counts_of(outcome))

    def finish_bundle(self) -> None:
        """Lets the program end here, if it has been asked to."""
        end_here()


@contextmanager
def interrupts() -> Iterator[None]:
    """Raises `Interrupted` in the main thread when the process gets SIGINT or SIGTERM; only once.

    A second signal ends the process at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _SIGNALS]
    before = {number: signal.getsignal(number) for number in numbers}

    def interrupt(number: int, _: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_DFL)
        raise Interrupted(number)

    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is interrupt:
                signal.signal(number, handler)


def end_here() -> None:
    """Called by a step behind which nothing of its bundle is left to do: the program may end here.

    While nobody has asked it to, this does nothing.
    """
    _gate.pass_through()


def drain(seconds: float) -> None:
    """Waits until what was pulled is accounted for, and keeps the runner from pulling more.

    The process is to end next: the runner's thread stays where it is. If the time passes first, the runner
    waits for new messages, so that there is nothing to lose, or for the service.

    Args:
        seconds: Most seconds to wait.
    """
    _gate.close(seconds)


def unaccounted(counters: Counter[str]) -> int:
    """Returns how many of the messages that were read have not come to an end that is counted."""
    ends = ("messages_filtered_out", "empty_messages_dropped", "messages_published", "dead_letters_published")
    return max(0, counters["messages_read"] - sum(counters[name] for name in ends))


def _counts_of(outcome: PublishOutcome) -> dict[str, int]:
    return {
        "messages_published": outcome.messages,
        "batches_published": 1,
        "publish_attempts": outcome.attempts,
        "hedges_sent": outcome.hedges,
        "hedges_won": int(outcome.winner > 0),
        "hedges_throttled": outcome.hedges_throttled,
    }


class _Gate:
    """Where the runner's thread is held; one of a process, as the runner copies each `DoFn`."""

    def __init__(self) -> None:
        self._closing = threading.Event()
        self._arrived = threading.Event()
        self._go_on = threading.Event()

    def pass_through(self) -> None:
        if self._closing.is_set():
            self._arrived.set()
            # It is a daemon: if nobody lets it go on, it ends with the process.
            self._go_on.wait()
            self._go_on.clear()

    def close(self, seconds: float) -> None:
        self._closing.set()
        end = time.monotonic() + seconds
        while self._arrived.wait(max(0.0, end - time.monotonic())):
            if unaccounted(TALLY.counts()) == 0:
                return
            self._arrived.clear()
            self._go_on.set()


_gate = _Gate()
