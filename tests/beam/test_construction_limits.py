"""The limits of the transform's arguments: each edge accepted, everything outside refused when it is built."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.transforms.error_handling import ErrorHandler
from google.cloud.pubsub_v1.types import BatchSettings, LimitExceededBehavior, PublishFlowControl

from beam_hedge import HedgingSettings, InvalidSettingError, RetrySettings, WriteToPubSubHedged
from tests.server.serving import TOPIC

BLOCK = LimitExceededBehavior.BLOCK

REFUSED: list[tuple[str, dict[str, Any]]] = [
    *[
        ("topic", {"topic": topic})
        for topic in (
            "",
            "t",
            "topics/t",
            "projects/p/topics/",
            "projects//topics/t",
            "projects/p/subscriptions/t",
            "projects/p/topics/a b",
            "projects/p/topics/demo\n",
            "projects/p/topics/googx",
            "projects/p/topics/9x",
            f"projects/p/topics/{'a' * 256}",
            "projects/p/topics/é",
            b"projects/p/topics/t",
            None,
            3,
        )
    ],
    *[("settings", {"settings": value}) for value in (1.0, True, "on", HedgingSettings)],
    *[("retry_settings", {"retry_settings": value}) for value in (None, 60.0)],
    *[("with_attributes", {"with_attributes": value}) for value in (None, 1, "true")],
    *[("with_outcomes", {"with_outcomes": value}) for value in (None, 0, "false")],
    *[("publish_with_ordering_key", {"publish_with_ordering_key": value}) for value in (None, 0, True)],
    *[("connections", {"connections": value}) for value in (0, 9, -1, 2.0, True, "2", None)],
    *[("client_options", {"client_options": value}) for value in ("host", 3, {"no_such_option": 1})],
    *[("credentials", {"credentials": value}) for value in ("a token", 3)],
    ("batch_settings", {"batch_settings": None}),
    ("batch_settings", {"batch_settings": 5}),
    *[
        ("batch_settings.max_messages", {"batch_settings": BatchSettings(max_messages=value)})
        for value in (0, 1001, True, 5.0, "5")
    ],
    *[
        ("batch_settings.max_bytes", {"batch_settings": BatchSettings(max_bytes=value)})
        for value in (0, 10_000_001, 1e6)
    ],
    *[
        ("batch_settings.max_latency", {"batch_settings": BatchSettings(max_latency=value)})
        for value in (-0.001, math.nan, math.inf, "1")
    ],
    ("flow_control", {"flow_control": None}),
    *[
        ("flow_control.message_limit", {"flow_control": PublishFlowControl(value, 1000, BLOCK)})
        for value in (0, -1, 1.5, math.inf, True)
    ],
    *[
        ("flow_control.byte_limit", {"flow_control": PublishFlowControl(10, value, BLOCK)})
        for value in (0, 1e9, None)
    ],
    ("flow_control.limit_exceeded_behavior", {"flow_control": PublishFlowControl(10, 1000, "block")}),
    ("hedge_delay", {"retry_settings": RetrySettings(initial_rpc_timeout=1)}),
    ("hedge_delay", {"retry_settings": RetrySettings(total_timeout=1)}),
]


@pytest.mark.parametrize(("field", "arguments"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_is_outside_the_limits_is_refused_and_named(field: str, arguments: dict[str, Any]) -> None:
    """A mistake stops the launch and names the field, the value and what is allowed."""
    with pytest.raises(InvalidSettingError) as caught:
        WriteToPubSubHedged(**{"topic": TOPIC, **arguments})
    error = caught.value
    assert error.field == field
    assert error.allowed
    assert str(error).startswith(f"{field} must be {error.allowed}")
    assert len(str(error)) < 1000


ALLOWED: list[dict[str, Any]] = [
    {"settings": None},
    {"settings": HedgingSettings(hedge_delay=dt.timedelta(milliseconds=100))},
    {"settings": None, "retry_settings": RetrySettings(initial_rpc_timeout=0.1, total_timeout=0.1)},
    {"retry_settings": RetrySettings(initial_rpc_timeout=1.001, total_timeout=1.001)},
    {"batch_settings": BatchSettings(max_messages=1, max_bytes=1, max_latency=0)},
    {"batch_settings": BatchSettings(max_messages=1000, max_bytes=10_000_000, max_latency=60)},
    {"flow_control": PublishFlowControl(1, 1, LimitExceededBehavior.IGNORE)},
    {"connections": 1},
    {"connections": 8},
    {"client_options": {"api_endpoint": "europe-west1-pubsub.googleapis.com:443"}},
    {"topic": "projects/example.com:p-1/topics/a"},
    {"topic": f"projects/p-1/topics/{'a' * 255}"},
    {"topic": "projects/p-1/topics/a-._~+%20b"},
    {"publish_with_ordering_key": False},
]


@pytest.mark.parametrize("arguments", ALLOWED, ids=lambda value: str(value)[:60])
def test_the_edges_of_the_limits_are_allowed(arguments: dict[str, Any]) -> None:
    """What the documentation allows is accepted, the edges included."""
    WriteToPubSubHedged(**{"topic": TOPIC, **arguments})


def test_refused_messages_have_one_way_to_go() -> None:
    """Who asks for dead letters in two ways is told so, instead of finding one of them empty."""
    with pytest.raises(InvalidSettingError, match="dead_letter must be the only way"):
        WriteToPubSubHedged(TOPIC, dead_letter=True, error_handling={"output": "failed"})
    with pytest.raises(InvalidSettingError, match="the only way"):
        WriteToPubSubHedged(TOPIC, dead_letter=True).with_error_handler(ErrorHandler(beam.Map(print)))
