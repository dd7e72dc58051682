"""The pipeline, started as a user starts it: a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from demo.stop import StoppedError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence

# Found by the program wherever this one was started.
_ROOT = Path(__file__).resolve().parent.parent
_POLL_S = 0.1
_TERM_S = 5


class ProgramFailedError(Exception):
    """A program ended with a status other than 0."""


def run_program(
    arguments: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str],
    stop: threading.Event,
    tick: Callable[[], None],
) -> str:
    """Runs `python` with arguments, and ends it in any case.

    Args:
        arguments: What follows `python`.
        log: A file that takes all that the program prints.
        environment: Variables to add to those of this process.
        stop: Ends the program when it is set.
        tick: Called ten times a second while the program runs.

    Returns:
        The last line that the program printed.

    Raises:
        ProgramFailedError: The program failed; the text holds the end of its log.
        StoppedError: `stop` was set.
    """
    with log.open("wb") as output:
        program = subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, **environment, "PYTHONPATH": _search_path()},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C in a terminal reaches this process alone, which then ends the program.
            start_new_session=True,
        )
        try:
            while program.poll() is None and not stop.wait(_POLL_S):
                tick()
        finally:
            _end(program)
    if stop.is_set():
        raise StoppedError
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() or ["(it printed nothing)"]
    if program.returncode:
        raise ProgramFailedError(
            "\n".join([f"it ended with status {program.returncode}; see {log}", *lines[-15:]])
        )
    return lines[-1]


def _search_path() -> str:
    return os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))


def _end(program: subprocess.Popen[bytes]) -> None:
    if program.poll() is not None:
        return
    program.terminate()
    try:
        program.wait(_TERM_S)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
