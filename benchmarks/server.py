"""A Pub/Sub server in a process of its own, so that its work is not measured with the publisher's."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from typing import TYPE_CHECKING

from beam_hedge.testing import LatencyProfile, LocalPubSub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

TOPIC = "projects/benchmark/topics/out"


def _serve(profile: str, seed: int, parent: Connection) -> None:
    with LocalPubSub(profile=LatencyProfile.parse(profile), seed=seed, record=0, keep_messages=False) as server:
        server.create_topic(TOPIC)
        parent.send(server.endpoint)
        # Ends when the parent closes its end, or with the parent.
        with contextlib.suppress(EOFError):
            parent.recv()


@contextlib.contextmanager
def served_topic(profile: str = "none", seed: int = 0) -> Iterator[str]:
    """Starts a server, points the environment at it, and gives the name of a topic on it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(profile, seed, theirs), daemon=True)
    process.start()
    theirs.close()
    before = os.environ.get("PUBSUB_EMULATOR_HOST")
    os.environ["PUBSUB_EMULATOR_HOST"] = ours.recv()
    try:
        yield TOPIC
    finally:
        os.environ.pop("PUBSUB_EMULATOR_HOST")
        if before is not None:
            os.environ["PUBSUB_EMULATOR_HOST"] = before
        ours.close()
        process.join(10)
