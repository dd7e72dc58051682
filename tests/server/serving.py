"""An embedded Pub/Sub with one topic, and the scripts that several tests give it."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from beam_hedge import HedgingSettings
from beam_hedge.testing import LocalPubSub, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beam_hedge.testing import RequestRecord

TOPIC = "projects/p-test/topics/out"

# Hedges soon, from a bucket that does not run out in a test. Not as soon as the settings allow: on a busy
# machine the hedge of a test should have its answer before another one is due.
EAGER = HedgingSettings(hedge_delay=0.25, initial_tokens=50)

# Hedges so late that a test in which the service is quick sees none, on a busy machine either.
UNHURRIED = HedgingSettings(hedge_delay=10, initial_tokens=20)

# No promise hangs on this number: it only ends a test that would hang.
PATIENCE = 20.0


@contextmanager
def serving(script: Any = None, **settings: Any) -> Iterator[LocalPubSub]:
    """Runs a server that has `TOPIC`, with this process's clients pointed to it.

    Args:
        script: What becomes of publish calls; see `beam_hedge.testing.Script`.
        **settings: Further settings of the server.

    Yields:
        The server.
    """
    with LocalPubSub(script=script, **settings) as server, server.environment():
        server.create_topic(TOPIC)
        yield server


def by_attempt(*replies: Reply | None) -> Callable[[RequestRecord], Reply | None]:
    """Makes a script: the first reply for originals and their retries, the second for first hedges, and so on.

    Later hedges get the last reply. `None` is the usual answer.
    """

    def reply(record: RequestRecord) -> Reply | None:
        hedge = record.hedged_attempt_count
        assert hedge is not None, "an attempt came without its telemetry header"
        return replies[min(hedge, len(replies) - 1)]

    return reply


def by_number(*replies: Reply | None) -> dict[int, Reply]:
    """Makes a script: the first reply for the first call, and so on; the usual answer after the last."""
    return {number: reply for number, reply in enumerate(replies, 1) if reply is not None}


def all_ended(server: LocalPubSub, requests: int) -> tuple[RequestRecord, ...]:
    """Waits until so many calls have arrived and none is open; returns the records."""
    server.wait_for(lambda ledger: ledger.requests >= requests and not ledger.open, timeout=PATIENCE)
    return server.requests


def eventually(condition: Callable[[], object]) -> None:
    """Waits until a condition holds that nothing announces; fails after `PATIENCE`."""
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        pause.wait(0.001)


@contextmanager
def held(server: LocalPubSub) -> Iterator[None]:
    """Has the server hold back all answers until the end of the block, then answer as usual."""
    release = threading.Event()
    server.script = Reply(until=release)
    try:
        yield
    finally:
        server.script = None
        release.set()
