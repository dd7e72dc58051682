"""Waiting inside a handler: ends at once when the call does."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


# How long the thread that watches an event goes on after the last call that waited for the event has ended.
_WATCH_SECONDS = 0.05


class EventWatch:
    """Lets many calls wait for events of the user without a thread or a poll for each call.

    Owned by the publish service. There is one daemon thread for each event that a call waits for; it ends
    when the event is set, or soon after the last such call has ended. The lock guards the table and is held
    for moments.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wakes: dict[threading.Event, set[Callable[[], None]]] = {}

    def add(self, event: threading.Event, wake: Callable[[], None]) -> None:
        """Has `wake` called, once, after `event` was set."""
        with self._lock:
            wakes = self._wakes.get(event)
            if wakes is not None:
                wakes.add(wake)
                return
            self._wakes[event] = {wake}
        threading.Thread(target=self._watch, args=(event,), name="local-pubsub-event", daemon=True).start()

    def remove(self, event: threading.Event, wake: Callable[[], None]) -> None:
        """Takes back an `add()`; harmless after `wake` was called."""
        with self._lock:
            self._wakes.get(event, set()).discard(wake)

    def _watch(self, event: threading.Event) -> None:
        while not event.wait(_WATCH_SECONDS):
            with self._lock:
                if not self._wakes[event]:
                    del self._wakes[event]
                    return
        with self._lock:
            wakes = self._wakes.pop(event)
        for wake in wakes:
            wake()


class CallWait:
    """What one handler waits with: each wait ends at once when the call was cancelled or the server stops.

    Args:
        context: The gRPC context of the call.
        watch: The watch for events of the user.
    """

    def __init__(self, context: Any, watch: EventWatch) -> None:
        self._wake = threading.Event()
        self._watch = watch
        self.ended = False
        if not context.add_callback(self._end):
            self._end()

    def _end(self) -> None:
        # In this order: wait_for() clears the event and looks at the flag after that.
        self.ended = True
        self._wake.set()

    def sleep(self, seconds: float | None) -> bool:
        """Waits for a time, or for ever if it is None; returns False if the call ended before."""
        self._wake.wait(seconds)
        return not self.ended

    def wait_for(self, event: threading.Event) -> bool:
        """Waits until the event is set; returns False if the call ended before."""
        wake = self._wake.set
        self._watch.add(event, wake)
        self._wake.wait()
        self._watch.remove(event, wake)
        self._wake.clear()
        return not self.ended
