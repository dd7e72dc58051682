"""What comes of a call: a result, or an error of the one kind that is expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

E = TypeVar("E", bound=BaseException)


def attempt(kind: type[E], call: Callable[..., Any], *args: Any, **more: Any) -> tuple[Any, E | None]:
    """Makes a call.

    Args:
        kind: The errors that the call may raise.
        call: What to call.
        *args: Its arguments.
        **more: Its arguments by name.

    Returns:
        The result and no error, or no result and the error.
    """
    try:
        return call(*args, **more), None
    except kind as error:
        return None, error
