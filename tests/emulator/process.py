"""A child process that ends with the tests, however they end."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TERM_SECONDS = 10


@contextmanager
def child_process(command: Sequence[str], output: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a process group of its own for the length of a `with` block.

    The group is ended when the block is left. Should this process be killed before that, a watchdog ends the
    group: it waits at the end of a pipe that only this process holds open.

    Args:
        command: The program and its arguments.
        output: A file that takes what the program prints.

    Yields:
        The running process.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        watchdog = subprocess.Popen(
            ["sh", "-c", f"read -r _; kill -s KILL -- -{process.pid}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            watchdog.kill()
            watchdog.communicate()
    finally:
        _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    # It may have ended by itself (macOS then says "not permitted"). Its number stays taken until `wait`.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_TERM_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
