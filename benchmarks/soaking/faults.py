"""What goes wrong during a soak, as data, and the programme that a seed makes of it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc

from beam_hedge.retry import RETRYABLE
from beam_hedge.testing import NEVER, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FINAL = (
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.INVALID_ARGUMENT,
)
# In the same order in each run, as a set is not.
_RETRYABLE = sorted(RETRYABLE, key=lambda status: status.name)
_SHORTEST, _LONGEST = 3.0, 6.0
_CALM_SECONDS = 2.0
# Between two idle times there are so many faults.
_FAULTS_TO_IDLE = 4


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong for a while.

    Attributes:
        name: What it is called in the picture.
        replies: What some publish calls get instead of the usual answer; one of them by chance.
        share: The part of the calls that do.
        act: The method of `Disturber` that begins it, if more than answers change; called again and again.
        idle: Whether nothing is published meanwhile, so that all that was taken must be given back.
    """

    name: str
    replies: tuple[Reply, ...] = ()
    share: float = 0.0
    act: str = ""
    idle: bool = False


CALM = Fault("calm")
IDLE = Fault("idle", idle=True)

_CONNECTIONS = (
    Fault("connections freeze", act="freeze"),
    Fault("black hole", act="black_hole"),
    Fault("connections cut", act="cut"),
    Fault("slow path", act="slow"),
)
_OUTAGE = Fault("outage", act="outage")
_REPLIES = (
    Fault("slow tail", (*[Reply(delay=0.3)] * 4, Reply(delay=4.0)), 0.05),
    Fault(
        "retryable statuses",
        # Half of them store the messages first: the answer is lost.
        tuple(Reply(status=status, stored=stored) for status in _RETRYABLE for stored in (False, True)),
        0.4,
    ),
    Fault(
        "final statuses",
        (*(Reply(status=status, stored=stored) for status in _FINAL for stored in (False, True)), Reply(ids=0)),
        0.1,
    ),
    Fault("no answers", (NEVER,), 0.1),
    Fault("brownout", (Reply(delay=0.2),), 1.0),
)

# What can be done to each kind of service.
FAULTS = {
    "local": (*_REPLIES, *_CONNECTIONS, _OUTAGE, Fault("restart (GOAWAY)", act="restart")),
    "emulator": (*_CONNECTIONS, _OUTAGE, Fault("process stopped", act="pause")),
}
BY_NAME = {
    fault.name: fault for fault in (CALM, IDLE, *(fault for faults in FAULTS.values() for fault in faults))
}


@dataclass(frozen=True)
class Phase:
    """One fault at its time.

    Attributes:
        fault: What goes wrong.
        seconds: How long.
    """

    fault: Fault
    seconds: float


def programme(faults: Sequence[Fault], seconds: float, seed: int) -> list[Phase]:
    """Returns phases that fill a time: all faults in one random order, then all in another, calm in between.

    Args:
        faults: Of which it is made.
        seconds: The time to fill.
        seed: Of the order and the lengths.
    """
    phases: list[Phase] = []
    left = seconds
    for phase in _endless(faults, random.Random(seed)):
        # A fault that could not end in time is left out; what remains is calm.
        if phase.seconds + _CALM_SECONDS > left:
            break
        phases.append(phase)
        left -= phase.seconds
    return [*phases, Phase(CALM, left)]


def _endless(faults: Sequence[Fault], rng: random.Random) -> Iterator[Phase]:
    since_idle = 0
    yield Phase(CALM, _CALM_SECONDS)
    while True:
        for fault in rng.sample(faults, len(faults)):
            yield Phase(fault, rng.uniform(_SHORTEST, _LONGEST))
            yield Phase(CALM, _CALM_SECONDS)
            since_idle += 1
            if since_idle == _FAULTS_TO_IDLE:
                since_idle = 0
                yield Phase(IDLE, _CALM_SECONDS)
