"""Ctrl-C and the like, as a flag that is looked at where stopping is safe."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class StoppedError(Exception):
    """Somebody asked for the demonstration to stop."""


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Turns signals that would end the process into an event.

    An exception in the middle of starting or ending another program could leave that program behind.

    Yields:
        The event, which is set when a signal comes.
    """
    stop = threading.Event()
    # Windows has no SIGHUP.
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = [signal.signal(number, lambda *_: stop.set()) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
