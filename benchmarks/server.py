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

    from beam_hedge.testing import Script

TOPIC = "projects/benchmark/topics/out"


def _serve(profile: str, seed: int, script: Script | None, keep_messages: bool, parent: Connection) -> None:  # noqa: FBT001
    with LocalPubSub(
        profile=LatencyProfile.parse(profile),
        seed=seed,
        script=script,
        record=0,
        keep_messages=keep_messages,
    ) as server:
        server.create_topic(TOPIC)
        parent.send(server.endpoint)
        # Ends when the parent closes its end, or with the parent.
        with contextlib.suppress(EOFError):
            parent.recv()


@contextlib.contextmanager
def served_topic(
    profile: str = "none", seed: int = 0, *, script: Script | None = None, keep_messages: bool = False
) -> Iterator[str]:
    """Starts a server, points the environment at it, and gives the name of a topic on it.

    Args:
        profile: The latencies of the server.
        seed: Their seed.
        script: What becomes of publish calls; it must be one that can be pickled.
        keep_messages: Whether what is published can be pulled.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(profile, seed, script, keep_messages, theirs), daemon=True)
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
