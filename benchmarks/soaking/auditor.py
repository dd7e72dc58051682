"""What the service has stored, as its subscribers see it, held against what publishers were told."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

import grpc
from google.pubsub_v1.types import AcknowledgeRequest, PullRequest, PullResponse

from benchmarks.soaking.messages import id_of, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_PULLED = 1000
# Longer than any fault: what a pull that is given up brings is not seen before it is delivered again.
_PULL_SECONDS = 30.0
_PAUSE = 0.2


class Stored:
    """Which messages are stored: a byte for each.

    Filled by the threads of an `Auditor`, each with producers of its own; read by another.
    """

    def __init__(self) -> None:
        self._seen: dict[int, bytearray] = {}
        self._pending: dict[int, float] = {}
        self.copies = 0

    def add(self, producer: int, number: int) -> None:
        """Notes that a message is stored, perhaps once more."""
        seen = self._seen.setdefault(producer, bytearray())
        if number >= len(seen):
            seen.extend(bytes(number + 1 - len(seen)))
        self.copies += seen[number]
        seen[number] = 1

    def check(self, acknowledged: Iterable[int], now: float) -> list[float]:
        """Looks for messages that publishers were told are stored, those of earlier calls included.

        Args:
            acknowledged: Packed ids of which publishers were told since the last call.
            now: The time, in seconds.

        Returns:
            For how many seconds each message has been missing that is.
        """
        for packed in acknowledged:
            self._pending.setdefault(packed, now)
        self._pending = {packed: since for packed, since in self._pending.items() if not self._has(packed)}
        return [now - since for since in self._pending.values()]

    def _has(self, packed: int) -> bool:
        producer, number = unpack(packed)
        seen = self._seen.get(producer, b"")
        return number < len(seen) and seen[number] == 1


class Auditor:
    """Pulls from subscriptions. One daemon thread for each, which ends at `close()`, or with the process.

    Args:
        channel: To the service itself, past all that goes wrong on the way to it.
        subscriptions: Their full names.
    """

    def __init__(self, channel: grpc.Channel, subscriptions: Sequence[str]) -> None:
        self.stored = Stored()
        self._closed = threading.Event()
        self._pull = channel.unary_unary(
            "/google.pubsub.v1.Subscriber/Pull", PullRequest.serialize, PullResponse.deserialize
        )
        self._acknowledge = channel.unary_unary(
            "/google.pubsub.v1.Subscriber/Acknowledge", AcknowledgeRequest.serialize, bytes
        )
        for subscription in subscriptions:
            threading.Thread(target=self._run, args=(subscription,), daemon=True).start()

    def close(self) -> None:
        """Has the threads end with their next pull."""
        self._closed.set()

    def _run(self, subscription: str) -> None:
        known: set[str] = set()
        while not self._closed.is_set():
            with contextlib.suppress(grpc.RpcError):
                self._pull_once(subscription, known)
                continue
            # It is gone for a while, which is what a soak is for.
            self._closed.wait(_PAUSE)

    def _pull_once(self, subscription: str, known: set[str]) -> None:
        request = PullRequest(subscription=subscription, max_messages=_PULLED)
        received = self._pull(request, timeout=_PULL_SECONDS).received_messages
        for each in received:
            # A message that is delivered again is no copy.
            if each.message.message_id not in known:
                known.add(each.message.message_id)
                self.stored.add(*id_of(each.message.data))
        if received:
            ack_ids = [each.ack_id for each in received]
            self._acknowledge(
                AcknowledgeRequest(subscription=subscription, ack_ids=ack_ids), timeout=_PULL_SECONDS
            )


def now() -> float:
    """Returns the time of audits, in seconds."""
    return time.monotonic()
