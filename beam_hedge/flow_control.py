"""How much may be out at once: the back-pressure of a publisher."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from google.cloud.pubsub_v1.publisher.exceptions import FlowControlLimitError
from google.cloud.pubsub_v1.types import LimitExceededBehavior

from beam_hedge.errors import WrongThreadError

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.cloud.pubsub_v1.types import PublishFlowControl


class Permits:
    """What one batch needs of flow control, and whether it has it.

    They are made before they are acquired and given back at most once, so that whoever holds them can give
    them back after an interrupt without knowing how far things went.

    Args:
        messages: Messages of the batch.
        size: Bytes of the batch.
    """

    __slots__ = ("admitted", "error", "held", "messages", "size")

    def __init__(self, messages: int, size: int) -> None:
        self.messages = messages
        self.size = size
        self.held = False
        self.admitted: threading.Event | None = None
        self.error: Exception | None = None


class FlowController:
    """Permits for the messages and bytes that are out, handed to waiting batches in their order.

    A batch that is larger than a whole limit is admitted when nothing else is out. google-cloud-pubsub's own
    controller counts single messages and needs their protobufs; this one counts sealed batches.

    The lock is the controller's own and held only while numbers change. Safe for concurrent use.
    """

    def __init__(self, settings: PublishFlowControl) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._batches = 0
        self._messages = 0
        self._bytes = 0
        self._waiting: deque[Permits] = deque()
        self._closed: Callable[[], Exception] | None = None
        self._abandoned = False

    @property
    def batches(self) -> int:
        """How many batches hold permits."""
        return self._batches

    def acquire(self, permits: Permits, *, may_wait: bool = True) -> None:
        """Takes permits for one batch, waiting for them if the settings say so.

        Args:
            permits: What to take.
            may_wait: Whether this thread may wait; the one that gives permits back may not.

        Raises:
            FlowControlLimitError: There are none now, and the settings forbid waiting.
            WrongThreadError: There are none now, and this thread may not wait.
            Exception: What `close` was given.
        """
        behaviour = self._settings.limit_exceeded_behavior
        with self._lock:
            if self._closed is not None:
                raise self._closed()
            if behaviour is LimitExceededBehavior.IGNORE or (not self._waiting and self._fits(permits)):
                self._take(permits)
                return
            if behaviour is LimitExceededBehavior.ERROR:
                raise FlowControlLimitError(self._excess(permits))
            if not may_wait:
                raise WrongThreadError(
                    f"publishing from a callback would wait for ever: {self._excess(permits)}"
                )
            permits.admitted = threading.Event()
            self._waiting.append(permits)
        permits.admitted.wait()
        if permits.error is not None:
            raise permits.error

    def release(self, permits: Permits) -> None:
        """Gives back the permits of one batch, or its place among those who wait, and admits those who now fit.

        Harmless if it has neither.
        """
        with self._lock:
            if permits.held and not self._abandoned:
                # Without a call in between: a signal would find them given back in part.
                permits.held = False
                self._batches -= 1
                self._messages -= permits.messages
                self._bytes -= permits.size
            elif permits in self._waiting:
                self._waiting.remove(permits)
            else:
                return
            self._admit()
            if not self._batches:
                self._idle.notify_all()

    def wait_idle(self, timeout: float | None) -> bool:
        """Waits until no batch holds permits and none waits; returns whether `timeout` seconds were enough."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while self._batches or self._waiting:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._idle.wait(left)
        return True

    def close(self, make_error: Callable[[], Exception], *, abandon: bool = False) -> None:
        """Fails those who wait, and all who come later.

        Args:
            make_error: Makes what each of them gets.
            abandon: True: forget the permits that are held, too, because nobody is left to give them back.
        """
        with self._lock:
            self._closed = make_error
            if abandon:
                self._abandoned = True
                self._batches = self._messages = self._bytes = 0
            for permits in self._waiting:
                permits.error = make_error()
                _let_go(permits)
            self._waiting.clear()
            self._idle.notify_all()

    def _fits(self, permits: Permits) -> bool:
        return not self._batches or (
            self._messages + permits.messages <= self._settings.message_limit
            and self._bytes + permits.size <= self._settings.byte_limit
        )

    def _excess(self, permits: Permits) -> str:
        return (
            f"{self._messages} messages ({self._bytes} B) are out; {permits.messages} more ({permits.size} B) "
            f"would exceed {self._settings.message_limit} messages or {self._settings.byte_limit} B"
        )

    def _take(self, permits: Permits) -> None:
        # Without a call in between: a signal would find them taken in part.
        self._batches += 1
        self._messages += permits.messages
        self._bytes += permits.size
        permits.held = True

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0]):
            permits = self._waiting.popleft()
            self._take(permits)
            _let_go(permits)

    def __repr__(self) -> str:
        return f"<FlowController {self._batches} batches, {self._messages} messages, {self._bytes} B out>"


def _let_go(permits: Permits) -> None:
    assert permits.admitted is not None, "only those who wait are let go"
    permits.admitted.set()
