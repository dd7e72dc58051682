"""A setting of any kind and value is either allowed, or refused under its name: nothing else ever happens."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from google.cloud.pubsub_v1.types import BatchSettings, LimitExceededBehavior, PublishFlowControl
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_hedge import HedgingSettings, InvalidSettingError, RetrySettings
from beam_hedge.publisher_config import make_config
from beam_hedge.settings import DEFAULT_FLOW_CONTROL, check_batch_settings
from tests.fuzz.anything import Unspeakable, anything
from tests.fuzz.attempt import attempt
from tests.server.serving import TOPIC

DAY = 86_400


def _is_number(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and _is_number(value, least, most)


def _lasts(value: object, least: float, most: float) -> bool:
    return _is_number(value.total_seconds() if isinstance(value, dt.timedelta) else value, least, most)


_HEDGING: dict[str, Any] = {
    "hedge_delay": lambda value: _lasts(value, 0.1, 10),
    "max_tokens": lambda value: _is_whole(value, 1, 250),
    "refill_ratio": lambda value: _is_number(value, 0.001, 0.2),
    "initial_tokens": lambda value: _is_whole(value, 0, 50),
}
_RETRY: dict[str, Any] = {
    "initial_rpc_timeout": lambda value: _lasts(value, 0.001, DAY),
    "total_timeout": lambda value: _lasts(value, 0.001, DAY),
    # The longest wait, by default 60 s, must not be shorter.
    "initial_retry_delay": lambda value: _lasts(value, 0.001, 60),
    "retry_delay_multiplier": lambda value: _is_number(value, 1, 100),
    "max_retry_delay": lambda value: _lasts(value, 0.1, DAY),
}
_BATCH: dict[str, Any] = {
    "max_messages": lambda value: _is_whole(value, 1, 1_000),
    "max_bytes": lambda value: _is_whole(value, 1, 10_000_000),
    "max_latency": lambda value: _is_number(value, 0, DAY),
}
_FLOW: dict[str, Any] = {
    "message_limit": lambda value: _is_whole(value, 1, 2**53),
    "byte_limit": lambda value: _is_whole(value, 1, 2**53),
    "limit_exceeded_behavior": lambda value: isinstance(value, LimitExceededBehavior),
}
_KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "": (HedgingSettings, _HEDGING),
    " ": (RetrySettings, _RETRY),
    "batch_settings.": (lambda **fields: check_batch_settings(BatchSettings(**fields)), _BATCH),
    "flow_control.": (
        lambda **fields: _make(flow_control=DEFAULT_FLOW_CONTROL._replace(**fields)).flow_control,
        _FLOW,
    ),
}
_CASES = [(prefix, field) for prefix, (_, fields) in _KINDS.items() for field in fields]


def _make(**changes: Any) -> Any:
    usual: dict[str, Any] = {
        "topic": TOPIC,
        "settings": HedgingSettings(),
        "retry_settings": RetrySettings(),
        "flow_control": DEFAULT_FLOW_CONTROL,
        "connections": 2,
        "client_options": None,
        "credentials": None,
        "tracing": False,
    }
    return make_config(**{**usual, **changes})


@pytest.mark.parametrize(("prefix", "field"), _CASES)
@settings(max_examples=50)
@given(value=anything)
def test_each_field_takes_what_is_documented_and_nothing_else(prefix: str, field: str, value: Any) -> None:
    """No value crashes the launch, and none is bent into another one."""
    build, allowed = _KINDS[prefix][0], _KINDS[prefix][1][field]
    built, error = attempt(InvalidSettingError, build, **{field: value})
    assert allowed(value) == (error is None)
    if error is not None:
        # Two settings that contradict each other are told by the one that is easier to change.
        assert error.field in (f"{prefix}{field}".strip(), "max_retry_delay")
        assert str(error).startswith(f"{error.field} must be ")
    else:
        kept = getattr(built, field)
        assert kept == (value.total_seconds() if isinstance(value, dt.timedelta) else value)


_ARGUMENTS: dict[str, Any] = {
    "topic": lambda value: value is None,
    "settings": lambda value: value is None or isinstance(value, HedgingSettings) or value == {},
    "retry_settings": lambda value: isinstance(value, RetrySettings) or value == {},
    "flow_control": lambda value: isinstance(value, PublishFlowControl) or value == {},
    "connections": lambda value: _is_whole(value, 1, 8),
    "client_options": lambda value: value is None or value == {},
    "credentials": lambda value: value is None,
    "tracing": lambda value: isinstance(value, bool),
}


@pytest.mark.parametrize("argument", _ARGUMENTS)
@settings(max_examples=50)
@given(value=anything)
def test_each_argument_takes_what_is_documented_and_nothing_else(argument: str, value: Any) -> None:
    """A publisher and a sink are built, or the error says which argument is wrong."""
    _, error = attempt(InvalidSettingError, _make, **{argument: value})
    assert _ARGUMENTS[argument](value) == (error is None)
    if error is not None:
        name = {"tracing": "enable_open_telemetry_tracing"}.get(argument, argument)
        assert error.field.startswith(name)


_options = st.dictionaries(
    st.sampled_from(
        ("api_endpoint", "api_key", "scopes", "quota_project_id", "credentials_file", "api_kee", "")
    ),
    anything,
    max_size=3,
)


@given(options=_options)
def test_client_options_are_taken_or_refused_by_their_names(options: dict[str, Any]) -> None:
    """Options of the client library are handed on; a name that it does not know stops the launch."""
    config, error = attempt(InvalidSettingError, _make, client_options=options)
    if error is not None:
        assert error.field.startswith("client_options")
        assert {"api_kee", ""} & set(options) or {"api_key", "credentials_file"} <= set(options)
    else:
        assert all(getattr(config.client_options, name) is value for name, value in options.items())


def test_a_value_that_cannot_be_shown_is_refused_under_its_name() -> None:
    """A value whose own code fails is a wrong value like any other."""
    with pytest.raises(InvalidSettingError, match="max_tokens must be"):
        HedgingSettings(max_tokens=Unspeakable())  # type: ignore[arg-type]
