"""Telling of errors that nobody waits for, when the program's own log may be what is broken."""

from __future__ import annotations

import contextlib
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    import logging


def log_exception(logger: logging.Logger, text: str) -> None:
    """Logs the exception that is being handled; if a handler raises, both go to standard error.

    Python's own handlers catch what goes wrong in them. Others need not, and the engine's thread has to go on.
    """
    try:
        logger.exception(text)  # noqa: LOG004 - called where one is handled
    except BaseException:  # noqa: BLE001 - a handler must not end the engine's thread, not even with SystemExit
        _print_exception()


def handle_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Is an event loop's exception handler: asyncio's own, which ends the loop if a log handler raises."""
    try:
        loop.default_exception_handler(context)
    except BaseException:  # noqa: BLE001 - as above
        _print_exception()


def _print_exception() -> None:
    # Standard error may be closed, and there is nobody else to tell.
    with contextlib.suppress(Exception):
        traceback.print_exc()
