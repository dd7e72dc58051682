"""Gives each test of this folder the matrix that its rows go to."""

from __future__ import annotations

import pytest

from tests.faults.row import Matrix


@pytest.fixture
def matrix(request: pytest.FixtureRequest) -> Matrix:
    """Make the matrix, which knows this test's name."""
    return Matrix(request.node.nodeid)
