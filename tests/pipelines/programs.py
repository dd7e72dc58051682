"""Pipelines started as a user starts them: programs of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]


class Program:
    """A running pipeline.

    Args:
        process: Its process.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """Sends a signal."""
        self._process.send_signal(number)

    def end(self, seconds: float) -> tuple[int, str, str]:
        """Waits for the end; returns the status and what was printed to standard output and error.

        Raises:
            subprocess.TimeoutExpired: It has not come.
        """
        said, complained = self._process.communicate(timeout=seconds)
        return self._process.returncode, said, complained


@contextmanager
def started(module: str, endpoint: str, *arguments: str, path: Path = ROOT) -> Iterator[Program]:
    """Starts a pipeline from a folder that is not the project's, and makes sure that it ends.

    Args:
        module: Its name.
        endpoint: Where its Pub/Sub is.
        *arguments: Its command line.
        path: Where Python finds it. Default: here.

    Yields:
        The program.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(path), "PUBSUB_EMULATOR_HOST": endpoint},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield Program(process)
    finally:
        process.kill()
        process.communicate()


def figures(said: str) -> dict[str, int]:
    """Returns the numbers of the last line that a pipeline printed, by what stands before or behind them."""
    last = said.splitlines()[-1]
    pairs = [
        *((name, number) for number, name in re.findall(r"([\d,]+) ([a-z ]+)", last)),
        *re.findall(r"([A-Z][a-z -]+): ([\d,]+)\.", last),
    ]
    return {name.strip(): int(number.replace(",", "")) for name, number in pairs}
