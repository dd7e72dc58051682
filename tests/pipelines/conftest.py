"""Keeps the tests of this folder apart: each starts without a publisher that an earlier one left lingering."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.beam.pipelines import close_publishers

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def no_lingering_publishers() -> Iterator[None]:
    """Close all publishers that the sink leased, and forget their buckets."""
    yield
    close_publishers()
