"""Programs of their own, and what a test does with them: talks to them, sends signals, and ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]

# Like a test's patience, for what waits for interpreters that start and import Beam.
STARTUP = 60.0


class Program:
    """A program that runs.

    Args:
        process: Its process.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def tell(self, *words: str) -> None:
        """Sends a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def hear(self) -> list[str]:
        """Waits for a line, and returns its words; none if the program has ended."""
        assert self.process.stdout is not None
        with ThreadPoolExecutor(1) as pool:
            line = pool.submit(self.process.stdout.readline)
            try:
                return line.result(STARTUP).split()
            finally:
                if not line.done():
                    # Which ends the reading, too.
                    self.kill()

    def ask(self, *words: str) -> list[str]:
        """Sends a line, and returns the answer."""
        self.tell(*words)
        return self.hear()

    def end(self) -> tuple[int, str, str]:
        """Lets it end, and returns its status and what else it wrote to standard output and error."""
        said, complained = self.process.communicate(timeout=STARTUP)
        return self.process.returncode, said, complained

    def kill(self) -> None:
        """Ends it and its children as `kill -9` does."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            self.process.wait()


@contextmanager
def running(module: str, *arguments: str, **environment: str) -> Iterator[Program]:
    """Starts a program in a process group of its own, and kills the group at the end.

    Args:
        module: Its name.
        *arguments: Its command line.
        **environment: What it finds in its environment besides that of the tests.

    Yields:
        The program.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    program = Program(process)
    try:
        yield program
    finally:
        program.kill()
        process.communicate()
