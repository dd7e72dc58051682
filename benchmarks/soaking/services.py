"""The services that a soak publishes to, and the path that leads to them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from typing import TYPE_CHECKING, Protocol

import grpc

from beam_hedge.testing import LocalPubSub, Reply
from beam_hedge.testing.relay import Relay
from benchmarks.soaking.faults import CALM
from benchmarks.soaking.messages import POISON

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

    from beam_hedge.testing import RequestRecord
    from benchmarks.soaking.faults import Fault

_USUAL = Reply(delay=0.02)
_REFUSED = Reply(status=grpc.StatusCode.INVALID_ARGUMENT, details="this message is not taken")
_HOST = "127.0.0.1"
_PORT_SECONDS = 10.0
_PORT_PAUSE = 0.1


class Path:
    """A relay in front of a service: connections can be disturbed, and all of it can go and come back.

    Args:
        target: The service's port.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self.relay = Relay(_HOST, 0, (_HOST, target))
        self.port = self.relay.port

    def stop(self) -> None:
        """Cuts all connections and refuses new ones."""
        self.relay.stop()

    def start(self) -> None:
        """Listens again, on the same port."""
        deadline = time.monotonic() + _PORT_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                self.relay = Relay(_HOST, self.port, (_HOST, self._target))
                return
            # Somebody's outgoing connection may have been given the port.
            time.sleep(_PORT_PAUSE)
        raise OSError(f"cannot listen on port {self.port} again")


class Service(Protocol):
    """What a soak needs of a service."""

    port: int

    def answer(self, fault: Fault) -> None:
        """Has publish calls answered as a fault says."""
        ...

    def stop(self) -> None:
        """Has it go, with what it holds kept."""
        ...

    def start(self) -> None:
        """Has it come back, on its port."""
        ...

    def hedges(self, topic: str) -> int:
        """Returns how many hedges for a topic have arrived; 0 if it does not count."""
        ...

    def close(self) -> None:
        """Ends it for good."""
        ...


class LocalService:
    """A `LocalPubSub`, which can do everything.

    Args:
        seed: Of the draws of answers.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._server = LocalPubSub(record=0, auto_create_topics=True).start()
        self.port = int(self._server.endpoint.rpartition(":")[2])
        self.answer(CALM)

    def answer(self, fault: Fault) -> None:  # noqa: D102
        self._server.script = Answers(fault.replies, fault.share, self._seed)

    def stop(self) -> None:  # noqa: D102
        self._server.stop()

    def start(self) -> None:  # noqa: D102
        self._server.start()

    def hedges(self, topic: str) -> int:  # noqa: D102
        return self._server.ledger(topic).hedges

    def close(self) -> None:  # noqa: D102
        self._server.stop()


class Answers:
    """A script: draws what becomes of a call by its number.

    Args:
        replies: Of which some calls get one.
        share: The part of the calls that do.
        seed: Of the draws.
    """

    def __init__(self, replies: Sequence[Reply], share: float, seed: int) -> None:
        self._replies = replies
        self._share = share
        self._seed = seed

    def __call__(self, record: RequestRecord) -> Reply:
        """Answers a call."""
        if POISON in record.raw:
            return _REFUSED
        draw = random.Random(f"{self._seed} {record.number}")
        return draw.choice(self._replies) if draw.random() < self._share else _USUAL


class EmulatorService:
    """Google's emulator. It keeps messages in memory, so it can be stopped for a while, but not started anew.

    Args:
        process: The emulator.
        port: Its port.
    """

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self.port = port

    def answer(self, fault: Fault) -> None:
        """Answers as it always does."""

    def stop(self) -> None:
        """Has the process stand still."""
        os.killpg(self._process.pid, signal.SIGSTOP)

    def start(self) -> None:
        """Has it go on."""
        os.killpg(self._process.pid, signal.SIGCONT)

    def hedges(self, topic: str) -> int:  # noqa: ARG002
        """Returns 0: it does not count them."""
        return 0

    def close(self) -> None:
        """Leaves it to whoever started it, awake."""
        self.start()
