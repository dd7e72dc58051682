"""What this process uses: CPU, time and memory; and processes of their own for what is to be measured alone."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

T = TypeVar("T")

_US = 1e6
_KIB = 1024


@dataclass
class Usage:
    """What a block of code used.

    Attributes:
        cpu: Seconds of CPU of all threads of this process.
        wall: Seconds.
    """

    cpu: float = 0.0
    wall: float = 0.0


@contextlib.contextmanager
def measured() -> Iterator[Usage]:
    """Measures its block; what it yields is filled in at the end."""
    usage = Usage()
    cpu, wall = time.process_time(), time.perf_counter()
    yield usage
    usage.cpu = time.process_time() - cpu
    usage.wall = time.perf_counter() - wall


@dataclass(frozen=True)
class Published:
    """What it took to publish messages.

    Attributes:
        messages: How many.
        cpu: Seconds of CPU of the publishing process.
        wall: Seconds, from the first message to the last acknowledgement.
    """

    messages: int
    cpu: float
    wall: float

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.wall

    @property
    def cpu_us(self) -> float:
        """Microseconds of CPU a message."""
        return self.cpu / self.messages * _US


def memory() -> int:
    """Returns the bytes of memory that this process has resident. Linux only."""
    return _status("VmRSS")


def peak_memory() -> int:
    """Returns the most that it ever had. Not `ru_maxrss`, which begins with the parent's."""
    return _status("VmHWM")


def _status(name: str) -> int:
    lines = Path(f"/proc/{os.getpid()}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * _KIB for line in lines if line.startswith(f"{name}:"))


def own_process() -> Executor:
    """Returns a process that runs what it is given, one after the other; it ends with the `with` block.

    It is a fresh interpreter with the environment of this moment, so it finds the server that is on.
    """
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def in_fresh_process(work: Callable[..., T], *args: object) -> T:
    """Returns what `work(*args)` returns in a process that has done nothing else."""
    with own_process() as process:
        return process.submit(work, *args).result()
