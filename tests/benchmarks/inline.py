"""Runs at once, in the test's own process, what a benchmark would run in another one."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Inline(Executor):
    """An executor without a process.

    Args:
        at_end: Called when its `with` block ends.
    """

    def __init__(self, at_end: Callable[[], object] = lambda: None) -> None:
        self._at_end = at_end

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: D102
        future: Future[Any] = Future()
        future.set_result(work(*args, **kwargs))
        return future

    def shutdown(self, *_args: Any, **_kwargs: Any) -> None:  # noqa: D102
        self._at_end()
