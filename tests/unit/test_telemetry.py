"""The client-telemetry header: what the server is told about each attempt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.telemetry import HEADER, telemetry_header
from tests.unit.fakes import decode_telemetry


@pytest.mark.parametrize(("hedge", "value"), [(0, "CgA="), (1, "CgIIAQ==")])
def test_the_check_values_come_out(hedge: int, value: str) -> None:
    """The header is byte for byte what Google's other clients send."""
    assert telemetry_header(hedge) == ("x-goog-pubsub-client-telemetry", value)


@given(
    hedge=st.integers(min_value=0, max_value=2**31 - 1),
    start_time_ns=st.integers(min_value=1, max_value=4_000_000_000 * 10**9),
)
def test_attempt_count_and_start_time_come_back(hedge: int, start_time_ns: int) -> None:
    """The server can read the attempt's number, and the start time to the nanosecond."""
    assert decode_telemetry((telemetry_header(hedge, start_time_ns),)) == (hedge, start_time_ns)


def test_the_name_can_be_a_grpc_metadata_key() -> None:
    """The header is accepted by gRPC: lower case, and text, not binary."""
    assert HEADER.lower() == HEADER
    assert not HEADER.endswith("-bin")
