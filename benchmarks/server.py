"""Servers in a process of their own, so that their work is not measured with the publisher's."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import subprocess
import sys
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

from beam_hedge.testing import LatencyProfile, LocalPubSub
from benchmarks.publish_server import Seen, Setup

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from beam_hedge.testing import Script
    from benchmarks.disturbances import Programme

TOPIC = "projects/benchmark/topics/out"

_ROOT = Path(__file__).resolve().parent.parent
_DRAWS = 100_000


class Server:
    """A publish server that runs in its own process: it answers all calls with success, after a time.

    Args:
        pipe: The way to the process.
        latencies: What the requests take, in turn.
        seed: The seed of what is random in disturbances.
    """

    topic = TOPIC

    def __init__(self, pipe: Connection, latencies: array[float], seed: int) -> None:
        self._pipe = pipe
        self._latencies = latencies
        pipe.send(Setup(latencies, seed))
        self.endpoint = f"127.0.0.1:{pipe.recv()}"

    def disturb(self, programme: Programme) -> Seen:
        """Starts a programme of disturbances now; returns what was seen before."""
        return self._ask(programme)

    def seen(self) -> Seen:
        """Returns what the server has seen so far."""
        return self._ask(None)

    def drawn(self, begin: int, end: int) -> list[float]:
        """Returns the latencies of some of the requests, in seconds, in the order of arrival."""
        return [self._latencies[number % len(self._latencies)] for number in range(begin, end)]

    def _ask(self, programme: Programme | None) -> Seen:
        self._pipe.send(programme)
        seen = self._pipe.recv()
        assert isinstance(seen, Seen)
        return seen


def draw(profile: str, seed: int) -> array[float]:
    """Returns latencies in seconds: so many that a benchmark rarely begins again with the first.

    Args:
        profile: As for `LatencyProfile.parse`.
        seed: Their seed.
    """
    parsed = LatencyProfile.parse(profile)
    return array("d", itertools.islice(parsed.draws(seed), _DRAWS if len(parsed.parts) > 1 else 1))


@contextlib.contextmanager
def serving(profile: str = "none", seed: int = 0) -> Iterator[Server]:
    """Starts a publish server and points the environment at it.

    Args:
        profile: Its latencies: a name such as "tail", or parts such as "0.9:0.005,0.1:0.3".
        seed: Their seed, and that of what is random in disturbances.
    """
    ours, theirs = multiprocessing.Pipe()
    # Not with -m: what is pickled there would belong to a module called __main__.
    program = "from benchmarks.publish_server import main; main()"
    command = [sys.executable, "-c", program, str(theirs.fileno())]
    with subprocess.Popen(command, cwd=_ROOT, pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        try:
            server = Server(ours, draw(profile, seed), seed)
            with _environment(server.endpoint):
                yield server
        finally:
            # The process ends when it sees this.
            ours.close()
            process.wait(10)


@contextlib.contextmanager
def served_topic(profile: str = "none", seed: int = 0) -> Iterator[str]:
    """Does what `serving` does, for those who want to know no more than the name of a topic."""
    with serving(profile, seed) as server:
        yield server.topic


@contextlib.contextmanager
def stored_topic(script: Script, *, keep_messages: bool = False) -> Iterator[str]:
    """Starts a `LocalPubSub`, which can refuse requests and keep messages, and points the environment at it.

    Args:
        script: What becomes of publish calls; it must be one that can be pickled.
        keep_messages: Whether what is published can be pulled.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_store, args=(script, keep_messages, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        with _environment(ours.recv()):
            yield TOPIC
    finally:
        ours.close()
        process.join(10)


def _store(script: Script, keep_messages: bool, parent: Connection) -> None:  # noqa: FBT001
    with LocalPubSub(script=script, record=0, keep_messages=keep_messages) as server:
        server.create_topic(TOPIC)
        parent.send(server.endpoint)
        # Ends when the parent closes its end, or with the parent.
        with contextlib.suppress(EOFError):
            parent.recv()


@contextlib.contextmanager
def _environment(endpoint: str) -> Iterator[None]:
    before = os.environ.get("PUBSUB_EMULATOR_HOST")
    os.environ["PUBSUB_EMULATOR_HOST"] = endpoint
    try:
        yield
    finally:
        os.environ.pop("PUBSUB_EMULATOR_HOST")
        if before is not None:
            os.environ["PUBSUB_EMULATOR_HOST"] = before
