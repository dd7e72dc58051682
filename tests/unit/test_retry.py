"""Retries: which errors, and how long to wait."""

from __future__ import annotations

from datetime import timedelta

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.retry import is_retryable, retry_delay
from beam_hedge.settings import RetrySettings

RETRIED = {
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNKNOWN,
}


@pytest.mark.parametrize("status", list(grpc.StatusCode))
def test_the_statuses_of_googles_client_are_retried_and_no_others(status: grpc.StatusCode) -> None:
    """An error that can pass is tried again, and one that cannot is told at once."""
    assert is_retryable(status, "") == (status in RETRIED)


@pytest.mark.parametrize(
    "details",
    [
        "Received message larger than max (4194318 vs. 4194304)",
        "Sent message larger than max (20000000 vs. 10000000)",
        "grpc: received message larger than max (4194318 vs. 4194304)",
    ],
)
def test_c08_a_request_that_is_too_large_is_not_retried_as_if_quota_were_spent(details: str) -> None:
    """A request that no server will ever take fails at once, though its status is that of a spent quota."""
    assert not is_retryable(grpc.StatusCode.RESOURCE_EXHAUSTED, details)
    assert is_retryable(grpc.StatusCode.RESOURCE_EXHAUSTED, "quota exceeded for publish throughput")
    assert is_retryable(grpc.StatusCode.UNAVAILABLE, details)


def test_waits_grow_by_the_multiplier_up_to_the_longest() -> None:
    """A service that stays away is asked less and less often, but not ever more seldom."""
    retry = RetrySettings(initial_retry_delay=0.1, retry_delay_multiplier=4, max_retry_delay=10)
    longest = [round(retry_delay(retry, retries, lambda: 1.0), 9) for retries in range(6)]
    assert longest == [0.1, 0.4, 1.6, 6.4, 10, 10]


@pytest.mark.parametrize("multiplier", [1, 1.0])
def test_waits_may_stay_equal(multiplier: float) -> None:
    """A user can have waits that do not grow, however many there are."""
    retry = RetrySettings(initial_retry_delay=0.1, retry_delay_multiplier=multiplier)
    assert retry_delay(retry, 10**9, lambda: 1.0) == 0.1


def test_a_wait_can_be_set_as_a_timedelta() -> None:
    """Durations mean the same in both of their forms."""
    retry = RetrySettings(initial_retry_delay=timedelta(milliseconds=200), max_retry_delay=timedelta(seconds=1))
    assert [retry_delay(retry, retries, lambda: 1.0) for retries in (0, 1, 2)] == [0.2, 0.8, 1]


@given(
    initial=st.floats(min_value=0.001, max_value=86_400),
    multiplier=st.floats(min_value=1, max_value=100),
    longest=st.floats(min_value=0.001, max_value=86_400),
    retries=st.integers(min_value=0, max_value=2000),
    drawn=st.floats(min_value=0, max_value=1),
)
def test_a_wait_is_drawn_from_the_upper_half_of_its_range(
    initial: float, multiplier: float, longest: float, retries: int, drawn: float
) -> None:
    """Workers that failed together do not come back together, and none comes back much too early."""
    retry = RetrySettings(
        initial_retry_delay=min(initial, longest), retry_delay_multiplier=multiplier, max_retry_delay=longest
    )
    most = retry_delay(retry, retries, lambda: 1.0)
    delay = retry_delay(retry, retries, lambda: drawn)
    assert most / 2 <= delay <= most <= longest
    assert delay == pytest.approx(most * (1 + drawn) / 2)
    assert retry_delay(retry, retries, lambda: 0.0) == most / 2
    assert retry_delay(retry, retries + 1, lambda: 1.0) >= most


def test_after_any_number_of_retries_a_wait_is_the_longest() -> None:
    """A batch that was retried for hours is not ended by a number that grew too large."""
    retry = RetrySettings(initial_retry_delay=0.001, retry_delay_multiplier=100, max_retry_delay=60)
    assert retry_delay(retry, 10**6, lambda: 1.0) == 60
