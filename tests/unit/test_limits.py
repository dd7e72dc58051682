"""Settings that are checked where they are used: connections, batches, flow control, and types."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from google.cloud.pubsub_v1.types import BatchSettings, PublishFlowControl

from beam_hedge.settings import (
    check_batch_settings,
    check_connections,
    check_flow_control,
    check_hedging_settings,
    check_retry_settings,
)
from tests.unit.refusals import NO_NUMBERS, assert_refused, kind


@pytest.mark.parametrize("value", [1, 8])
def test_each_edge_of_the_connections_is_accepted(value: int) -> None:
    """A publisher has 1 to 8 connections."""
    assert check_connections(value) == value


@pytest.mark.parametrize("value", [0, 9, -1, 2.0, *NO_NUMBERS], ids=kind)
def test_any_other_number_of_connections_is_refused(value: Any) -> None:
    """A number of connections that makes no sense is refused."""
    assert_refused("connections", value, lambda: check_connections(value))


@pytest.mark.parametrize(
    ("field", "edges", "outside"),
    [
        ("max_messages", (1, 1000), (0, 1001, 1.5)),
        ("max_bytes", (1, 10_000_000), (0, 10_000_001, 0.5)),
        ("max_latency", (0, 0.01, 86_400), (-0.001, 86_401)),
    ],
)
def test_batch_settings_fit_pubsubs_limits(
    field: str, edges: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    """Batches that Pub/Sub would refuse are refused when the transform is built."""
    for value in edges:
        settings = BatchSettings(**{field: value})
        assert check_batch_settings(settings) is settings
    for bad in (*outside, *NO_NUMBERS):
        assert_refused(
            f"batch_settings.{field}",
            bad,
            functools.partial(check_batch_settings, BatchSettings(**{field: bad})),
        )


@pytest.mark.parametrize("field", ["message_limit", "byte_limit"])
def test_flow_control_limits_are_whole_numbers_of_at_least_one(field: str) -> None:
    """A limit that lets nothing through is refused."""
    assert check_flow_control(PublishFlowControl(**{field: 1}))
    for bad in (0, -1, 1.5, *NO_NUMBERS):
        assert_refused(
            f"flow_control.{field}",
            bad,
            functools.partial(check_flow_control, PublishFlowControl(**{field: bad})),
        )


def test_settings_of_the_wrong_type_are_refused() -> None:
    """A dict or a swapped argument is told by name, not by an AttributeError in a worker."""
    for field, check in (
        ("settings", check_hedging_settings),
        ("retry_settings", check_retry_settings),
        ("batch_settings", check_batch_settings),
        ("flow_control", check_flow_control),
    ):
        value: Any = {"hedge_delay": 1}
        assert_refused(field, value, functools.partial(check, value))
    assert check_hedging_settings(None) is None
    assert_refused(
        "flow_control.limit_exceeded_behavior",
        "block",
        lambda: check_flow_control(PublishFlowControl(limit_exceeded_behavior="block")),
    )
