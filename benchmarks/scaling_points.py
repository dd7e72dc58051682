"""The points of `benchmarks.scaling`: each in a process that has been set up and done nothing else."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.cloud.pubsub_v1.types import LimitExceededBehavior, PublishFlowControl

from beam_hedge import HedgingPublisher, WriteToPubSubHedged
from benchmarks.disturbances import Disturbance, Freeze
from benchmarks.server import TOPIC
from benchmarks.usage import measured, memory, own_process, peak_memory
from benchmarks.write_stage import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.server import Server

_DATA = b"x" * 1024
_OPEN = PublishFlowControl(
    message_limit=10**9, byte_limit=10**12, limit_exceeded_behavior=LimitExceededBehavior.BLOCK
)
_WARM_UP = 1000
_LOOK_AGAIN = 0.01


@dataclass(frozen=True)
class Point:
    """What a process used after setup.

    Attributes:
        cpu: Seconds of CPU.
        wall: Seconds.
        memory: Bytes by which its peak of memory exceeds what it had after setup.
        in_flight: The most requests that were out at once, where that was looked at.
    """

    cpu: float
    wall: float
    memory: int
    in_flight: int = 0


def measure(work: Callable[[int], Point], size: int, server: Server, stall: float = 0.0) -> Point:
    """Measures one point in a fresh process.

    Args:
        work: `publish_messages` or `hold_batches`.
        size: What it is given.
        server: The server that is on.
        stall: For how many seconds from the beginning on the server answers nothing.
    """
    with own_process() as process:
        process.submit(work, 1 if work is hold_batches else _WARM_UP).result()
        if stall:
            server.disturb((Disturbance(Freeze(), seconds=stall, connection=None),))
        return process.submit(work, size).result()


def publish_messages(size: int) -> Point:
    """Publishes so many messages through a pipeline."""
    before = memory()
    used = run(_DATA, WriteToPubSubHedged(TOPIC).__ror__, size)
    return Point(used.cpu, used.wall, peak_memory() - before)


def hold_batches(size: int) -> Point:
    """Publishes so many batches at once, of one message each, and waits for them."""
    before = memory()
    publisher = _publisher()
    in_flight = 0
    with measured() as used:
        futures = [publisher.publish([_DATA]) for _ in range(size)]
        while in_flight < size and not futures[0].done():
            in_flight = max(in_flight, sum(publisher._channels.out))  # noqa: SLF001 - nobody else is told
            time.sleep(_LOOK_AGAIN)
        for future in futures:
            future.result()
    return Point(used.cpu, used.wall, peak_memory() - before, in_flight)


@functools.cache
def _publisher() -> HedgingPublisher:
    """The process's publisher, which ends with it."""
    return HedgingPublisher(TOPIC, flow_control=_OPEN)
