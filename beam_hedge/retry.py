"""When the original of a batch is tried again: pure functions of an error and of what is left of its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc

from beam_hedge.settings import seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.settings import RetrySettings

# The codes that google-cloud-pubsub's publisher retries.
RETRYABLE = frozenset(
    {
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.UNKNOWN,
    }
)
# gRPC reports a message over a size limit with the same code as a spent quota, but it can never succeed.
_SIZE_ERROR = "message larger than max"


def is_retryable(status: grpc.StatusCode, details: str) -> bool:
    """Tells whether the same request can succeed later."""
    if status is grpc.StatusCode.RESOURCE_EXHAUSTED and _SIZE_ERROR in details:
        return False
    return status in RETRYABLE


def retry_delay(retry: RetrySettings, retries: int, random: Callable[[], float]) -> float:
    """Draws the wait before the next try, in seconds.

    Args:
        retry: The settings.
        retries: How many retries there have been: 0 before the first.
        random: Gives a number from 0 to 1, as `random.random`.

    Returns:
        A number from the upper half of [0, d], where d grows exponentially with `retries`.
    """
    longest = seconds(retry.max_retry_delay)
    delay = seconds(retry.initial_retry_delay)
    # Multiplied step by step: a power would overflow after many retries.
    for _ in range(retries):
        if delay >= longest or retry.retry_delay_multiplier == 1:
            break
        delay *= retry.retry_delay_multiplier
    delay = min(delay, longest)
    return delay * (0.5 + 0.5 * random())
