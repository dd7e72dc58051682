"""Settings: each edge is accepted, each value outside is refused when the setting is built."""

from __future__ import annotations

import functools
import pickle
from datetime import timedelta
from typing import Any

import pytest
from google.cloud.pubsub_v1.types import LimitExceededBehavior

from beam_hedge.errors import InvalidSettingError
from beam_hedge.settings import (
    DEFAULT_BATCH_SETTINGS,
    DEFAULT_FLOW_CONTROL,
    HedgingSettings,
    RetrySettings,
    check_delay_fits,
    seconds,
)
from tests.unit.refusals import NO_NUMBERS, assert_refused, kind

RETRY_DURATIONS = ("initial_rpc_timeout", "total_timeout", "initial_retry_delay", "max_retry_delay")


def _retry(field: str, value: Any) -> RetrySettings:
    if field == "initial_retry_delay":
        return RetrySettings(initial_retry_delay=value, max_retry_delay=86_400)
    if field == "max_retry_delay":
        return RetrySettings(initial_retry_delay=0.001, max_retry_delay=value)
    return RetrySettings(**{field: value})


def test_the_defaults_are_those_of_googles_guide() -> None:
    """A user who sets nothing gets the documented values."""
    assert HedgingSettings() == HedgingSettings(
        hedge_delay=1, max_tokens=50, refill_ratio=0.1, initial_tokens=0
    )
    assert RetrySettings() == RetrySettings(
        initial_rpc_timeout=60,
        total_timeout=600,
        initial_retry_delay=0.1,
        retry_delay_multiplier=4,
        max_retry_delay=60,
    )
    assert (DEFAULT_BATCH_SETTINGS.max_messages, DEFAULT_BATCH_SETTINGS.max_bytes) == (100, 1_000_000)
    assert DEFAULT_FLOW_CONTROL.limit_exceeded_behavior is LimitExceededBehavior.BLOCK


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hedge_delay", 0.1),
        ("hedge_delay", 10),
        ("hedge_delay", 10.0),
        ("max_tokens", 1),
        ("max_tokens", 250),
        ("refill_ratio", 0.001),
        ("refill_ratio", 0.2),
        ("initial_tokens", 0),
        ("initial_tokens", 50),
    ],
)
def test_each_edge_of_the_hedging_settings_is_accepted(field: str, value: float) -> None:
    """What the documentation allows can be set, and is kept as given."""
    assert getattr(HedgingSettings(**{field: value}), field) == value  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hedge_delay", 0.0999999),
        ("hedge_delay", 10.0000001),
        ("hedge_delay", 0),
        ("hedge_delay", -1),
        ("max_tokens", 0),
        ("max_tokens", 251),
        ("max_tokens", -1),
        ("max_tokens", 50.0),
        ("max_tokens", 0.5),
        ("refill_ratio", 0.00099),
        ("refill_ratio", 0.2000001),
        ("refill_ratio", 0),
        ("refill_ratio", 1),
        ("initial_tokens", -1),
        ("initial_tokens", 51),
        ("initial_tokens", 1.0),
    ],
)
def test_each_value_outside_the_hedging_settings_is_refused(field: str, value: float) -> None:
    """What the documentation does not allow is refused and never clamped."""
    assert_refused(field, value, lambda: HedgingSettings(**{field: value}))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=kind)
@pytest.mark.parametrize("field", ["hedge_delay", "max_tokens", "refill_ratio", "initial_tokens"])
def test_what_is_no_number_is_no_hedging_setting(field: str, value: object) -> None:
    """NaN, infinities, booleans, strings and the like are refused, each by the field's name."""
    assert_refused(field, value, lambda: HedgingSettings(**{field: value}))  # type: ignore[arg-type]


def test_initial_tokens_fit_in_the_bucket() -> None:
    """A warm start holds at most as many tokens as the bucket can."""
    assert HedgingSettings(max_tokens=3, initial_tokens=3).initial_tokens == 3
    assert_refused("initial_tokens", 4, lambda: HedgingSettings(max_tokens=3, initial_tokens=4))


@pytest.mark.parametrize("field", RETRY_DURATIONS)
@pytest.mark.parametrize("value", [0.001, 1, 86_400])
def test_each_edge_of_the_retry_durations_is_accepted(field: str, value: float) -> None:
    """A user can set any duration up to one day."""
    assert getattr(_retry(field, value), field) == value


@pytest.mark.parametrize("field", RETRY_DURATIONS)
@pytest.mark.parametrize("value", [0, -1, 86_400.001, *NO_NUMBERS], ids=kind)
def test_each_value_outside_the_retry_durations_is_refused(field: str, value: object) -> None:
    """A duration that makes no sense is refused, by the field's name."""
    assert_refused(field, value, lambda: _retry(field, value))


def test_the_multiplier_has_its_edges() -> None:
    """Waits may stay equal or grow, and never shrink."""
    assert RetrySettings(retry_delay_multiplier=1).retry_delay_multiplier == 1
    assert RetrySettings(retry_delay_multiplier=100).retry_delay_multiplier == 100
    for value in (0.999, 100.1, *NO_NUMBERS):
        assert_refused(
            "retry_delay_multiplier", value, functools.partial(RetrySettings, retry_delay_multiplier=value)
        )


def test_the_longest_wait_is_not_shorter_than_the_first() -> None:
    """Two settings that contradict each other are refused."""
    assert RetrySettings(initial_retry_delay=2, max_retry_delay=2).max_retry_delay == 2
    with pytest.raises(InvalidSettingError, match="max_retry_delay must be at least initial_retry_delay"):
        RetrySettings(initial_retry_delay=2, max_retry_delay=1.999)


def test_durations_can_be_timedeltas() -> None:
    """A duration means the same as seconds and as a timedelta."""
    half = timedelta(milliseconds=500)
    assert HedgingSettings(hedge_delay=half) == HedgingSettings(hedge_delay=0.5)
    assert RetrySettings(total_timeout=timedelta(minutes=2)) == RetrySettings(total_timeout=120)
    assert seconds(half) == 0.5
    for value in (timedelta(milliseconds=99), timedelta(seconds=10, microseconds=1)):
        assert_refused("hedge_delay", value, functools.partial(HedgingSettings, hedge_delay=value))
    assert_refused("total_timeout", timedelta.max, lambda: RetrySettings(total_timeout=timedelta.max))


@pytest.mark.parametrize("field", ["initial_rpc_timeout", "total_timeout"])
def test_the_hedge_delay_is_strictly_shorter_than_both_timeouts(field: str) -> None:
    """A hedge that could never be sent is a mistake that the user is told of, with both values."""
    settings = HedgingSettings(hedge_delay=2)
    check_delay_fits(settings, RetrySettings(**{field: 2.001}))
    check_delay_fits(None, RetrySettings(**{field: 0.01}))
    for timeout in (2, 1.999, timedelta(seconds=2)):
        with pytest.raises(InvalidSettingError, match=f"^hedge_delay must be .*{field}.*, got 2.0$"):
            check_delay_fits(settings, RetrySettings(**{field: timeout}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [HedgingSettings(0.5, 7, 0.05, 3), RetrySettings(5, 50, 0.5, 2, 7), HedgingSettings(), RetrySettings()],
    ids=repr,
)
def test_settings_are_values(settings: HedgingSettings | RetrySettings) -> None:
    """Settings can be compared, hashed and sent to workers, and cannot be changed."""
    again = pickle.loads(pickle.dumps(settings))
    assert again == settings
    assert hash(again) == hash(settings)
    assert {settings: 1}[again] == 1
    with pytest.raises(AttributeError):
        settings.hedge_delay = 1  # type: ignore[union-attr, misc]


def test_settings_that_differ_are_not_equal() -> None:
    """Two sinks share a publisher only if all their settings are equal."""
    assert (
        len({HedgingSettings(), HedgingSettings(0.5), HedgingSettings(1, 51), HedgingSettings(1, 50, 0.2)}) == 4
    )
    assert HedgingSettings(initial_tokens=1) != HedgingSettings()
