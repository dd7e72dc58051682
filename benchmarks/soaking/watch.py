"""Memory, threads and file descriptors of this process, second by second, and whether they grow."""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MIB = 2**20
# What the project promises of a million messages, and twice what a soak of ten minutes was seen to grow by, of
# which a megabyte is its own books.
ALLOWED_GROWTH = 20 * MIB
_LEAST_SAMPLES = 6
# In so many seconds each fault comes twice, and the first half has seen what the second does.
_ALL_SEEN_SECONDS = 180.0
# In less time, a connection of each of two publishers' two can be there twice while it is replaced.
_REPLACED = 4


@dataclass(frozen=True)
class Usage:
    """What the process holds.

    Attributes:
        at: Seconds from the beginning.
        rss: Bytes of memory that are resident.
        threads: Threads, of Python and of libraries.
        descriptors: Open file descriptors.
    """

    at: float
    rss: int
    threads: int
    descriptors: int


def usage(at: float = 0.0) -> Usage:
    """Returns what this process holds. Linux only."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    # One descriptor is the look at them.
    descriptors = len(os.listdir("/proc/self/fd")) - 1  # noqa: PTH208 - no paths are needed
    return Usage(at, 1024 * int(fields["VmRSS"].split()[0]), int(fields["Threads"]), descriptors)


def slope(samples: Sequence[Usage], value: Callable[[Usage], float]) -> float:
    """Returns by how much a value grows each second, as a line through the samples has it."""
    return statistics.linear_regression([each.at for each in samples], [value(each) for each in samples]).slope


def growth(samples: Sequence[Usage]) -> list[str]:
    """Returns what grows, in words; nothing if all is flat.

    The second half is judged: in the first, buffers, pools and caches fill. Memory may rise by as much as
    `ALLOWED_GROWTH`, if it went on like that for the time of the whole run. The numbers of threads and
    descriptors go up and down with connections that are lost and replaced, so it is where their line ends
    that counts: not above the most that there was in the first half. A run so short that its halves have
    different faults may have a few more.

    Args:
        samples: In the order of time.
    """
    middle = len(samples) // 2
    first, second = samples[:middle], samples[middle:]
    if len(second) < _LEAST_SAMPLES:
        return []
    found = []
    seconds = samples[-1].at - samples[0].at
    grown = slope(second, lambda each: each.rss) * seconds
    if grown > ALLOWED_GROWTH:
        found.append(
            f"memory grows: {grown / MIB:.1f} MiB in {seconds:.0f} s, as the second half has it; "
            f"{ALLOWED_GROWTH / MIB:.0f} are allowed"
        )
    for name in ("threads", "descriptors"):
        values = [getattr(each, name) for each in second]
        times = [each.at for each in second]
        line = statistics.linear_regression(times, values)
        end = line.intercept + line.slope * times[-1]
        most = max(getattr(each, name) for each in first) + (_REPLACED if seconds < _ALL_SEEN_SECONDS else 0)
        if end > most:
            found.append(f"{name} grow: the trend ends at {end:.1f}, and {most} are allowed")
    return found
