"""What became of a published batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import grpc


@dataclass(frozen=True)
class PublishOutcome:
    """A batch that the service acknowledged.

    Attributes:
        topic: The full name of the topic.
        message_ids: The service's ids of the batch's messages, in their order.
        attempts: 1 + retries + hedges.
        hedges: Hedges sent.
        winner: Which attempt was answered first: 0 for the original, else the hedge's number.
        retries: Further tries of the original.
        latency: Seconds from when `publish()` accepted the batch (after flow control) to this outcome.
        hedges_failed: Hedges that ended in an error of their own, which nobody else sees.
        hedges_throttled: 1 if a due hedge found no token and so ended the batch's hedging, else 0.
        attempts_cancelled: Attempts that were still out, and were cancelled, when the winner answered.
        messages: How many messages the batch held.
        request_bytes: The size of the request, in bytes.
        refusals: The gRPC statuses of the attempts that ended without success, in their order.
        shared: Whether the batch was in one request with a batch of another thread, whose outcome tells of
            the attempts; this one then tells of one attempt, and no hedges.
    """

    topic: str
    message_ids: tuple[str, ...]
    attempts: int
    hedges: int
    winner: int
    retries: int
    latency: float
    hedges_failed: int
    hedges_throttled: int
    attempts_cancelled: int
    messages: int
    request_bytes: int
    refusals: tuple[grpc.StatusCode, ...] = ()
    shared: bool = False
