"""One streaming pull: messages go out, acknowledgements come in."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import grpc
from google.pubsub_v1 import types

from beam_hedge.testing.leases import Flow
from beam_hedge.testing.refusal import RefusedError, invalid
from beam_hedge.testing.subscription import MAX_ACK_DEADLINE, MIN_ACK_DEADLINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from beam_hedge.testing.leases import Lease
    from beam_hedge.testing.subscription import Subscription


_ReceivedMessage: Any = types.ReceivedMessage.pb()
_StreamingPullResponse: Any = types.StreamingPullResponse.pb()
_MOST_MESSAGES = 1_000


class PullStream:
    """Serves one streaming pull until the client ends it, the subscription goes or the server stops.

    The handler's thread sends; a thread of its own receives, and ends with the client's half of the stream,
    which ends with the call at the latest.

    Args:
        subscription: What is pulled from.
        first: The first request, which holds the stream's settings.

    Raises:
        RefusedError: INVALID_ARGUMENT if a setting is out of range.
    """

    def __init__(self, subscription: Subscription, first: Any) -> None:
        if not MIN_ACK_DEADLINE <= first.stream_ack_deadline_seconds <= MAX_ACK_DEADLINE:
            raise invalid(
                f"stream_ack_deadline_seconds must be {MIN_ACK_DEADLINE} to {MAX_ACK_DEADLINE}, "
                f"got {first.stream_ack_deadline_seconds}"
            )
        self._subscription = subscription
        self._first = first
        self._flow = Flow(
            # Zero and below mean: no limit.
            max_messages=first.max_outstanding_messages if first.max_outstanding_messages > 0 else math.inf,
            max_bytes=first.max_outstanding_bytes if first.max_outstanding_bytes > 0 else math.inf,
            ack_deadline=first.stream_ack_deadline_seconds,
        )
        self._over = threading.Event()
        self._refusal: RefusedError | None = None

    def run(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        """Yields responses until the stream is over."""
        if not context.add_callback(self._end):
            return
        threading.Thread(
            target=self._receive, args=(requests,), name="local-pubsub-stream", daemon=True
        ).start()
        while not self._over.is_set():
            leases = self._subscription.wait_and_take(_MOST_MESSAGES, self._flow, math.inf, self._over.is_set)
            if leases:
                yield _StreamingPullResponse(
                    received_messages=received(leases),
                    subscription_properties={"message_ordering_enabled": self._subscription.ordered},
                )
        if self._refusal is not None:
            raise self._refusal

    def _receive(self, requests: Iterator[Any]) -> None:
        try:
            self._apply(self._first)
            for request in requests:
                self._apply(request)
        except RefusedError as refusal:
            self._refusal = refusal
        except grpc.RpcError:
            # How the iterator says that the call was cancelled: that ends the stream, as it should.
            self._over.set()
        finally:
            self._end()

    def _apply(self, request: Any) -> None:
        if request.stream_ack_deadline_seconds:
            self._flow.ack_deadline = request.stream_ack_deadline_seconds
        if len(request.modify_deadline_ack_ids) != len(request.modify_deadline_seconds):
            raise invalid("modify_deadline_ack_ids and modify_deadline_seconds differ in length")
        self._subscription.acknowledge(request.ack_ids)
        for ack_id, seconds in zip(
            request.modify_deadline_ack_ids, request.modify_deadline_seconds, strict=True
        ):
            self._subscription.modify_deadline(ack_id, seconds)

    def _end(self) -> None:
        self._over.set()
        self._subscription.wake()


def received(leases: Iterable[Lease]) -> list[Any]:
    """Returns leased messages as a subscriber receives them."""
    return [_ReceivedMessage(ack_id=lease.ack_id, message=lease.message) for lease in leases]
