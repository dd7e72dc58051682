"""Values that no setting takes, and how a test shows that one is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from beam_hedge.errors import InvalidSettingError

if TYPE_CHECKING:
    from collections.abc import Callable

NAN, INFINITY = float("nan"), float("inf")
NO_NUMBERS: list[Any] = [
    NAN,
    INFINITY,
    -INFINITY,
    True,
    False,
    "1",
    b"1",
    None,
    [1],
    {},
    1j,
    10**400,
    -(10**400),
]


def kind(value: object) -> str:
    """Names a value in a test's id."""
    return f"{type(value).__name__}-{value}" if not isinstance(value, int) or abs(value) < 10**9 else "huge"


def assert_refused(field: str, value: object, build: Callable[[], object]) -> None:
    """Fails unless the error names the field, the value and what is allowed."""
    with pytest.raises(InvalidSettingError) as raised:
        build()
    error = raised.value
    assert (error.field, error.value is value) == (field, True)
    assert str(error).startswith(f"{field} must be ")
    assert error.allowed in str(error)
