"""The time of day is set while requests are out."""

from __future__ import annotations

import time
import types
from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge import HedgingPublisher, RetrySettings
from beam_hedge.testing import NEVER, Reply
from tests.faults.publishing import Caller, FirstTry, stored
from tests.server.serving import EAGER, PATIENCE, TOPIC, by_attempt, serving

if TYPE_CHECKING:
    from tests.faults.row import Matrix

SECTION = "The program that publishes"
MESSAGES = 50


class _Clock:
    """The time of day, which a test can change."""

    def __init__(self) -> None:
        self.offset = 0.0
        self._time, self._time_ns = time.time, time.time_ns

    def time(self) -> float:
        return self._time() + self.offset

    def time_ns(self) -> int:
        return self._time_ns() + int(self.offset * 1e9)


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0], ids=["back", "forward"])
def test_the_clock_jumps(jump: float, matrix: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hedges, retries and timeouts go by a clock that nobody sets; only the server is told the time of day."""
    clock = _Clock()
    # gRPC compares with the machine's own time of day, which no test can change.
    monkeypatch.setattr("grpc.aio._utils.time", types.SimpleNamespace(time=time.time))
    monkeypatch.setattr(time, "time", clock.time)
    monkeypatch.setattr(time, "time_ns", clock.time_ns)
    retry = RetrySettings(initial_retry_delay=0.2)
    never_first, refused_first = by_attempt(NEVER, None), FirstTry(Reply(status=grpc.StatusCode.UNAVAILABLE))
    with serving(never_first) as server, HedgingPublisher(TOPIC, EAGER, retry_settings=retry) as publisher:
        caller = Caller(publisher)
        caller.publish_each(20, "hedged")
        server.wait_for(lambda ledger: ledger.requests >= 20, timeout=PATIENCE)
        clock.offset = jump
        caller.wait()
        hedged = len(caller.outcomes)
        server.script = refused_first
        caller.publish_each(20, "retried")
        server.wait_for(lambda ledger: ledger.failed.get("UNAVAILABLE") == 20, timeout=PATIENCE)
        clock.offset = 0.0
        caller.wait()
        server.script = None
        recovery = caller.recover(time.monotonic())
    direction = "forward" if jump > 0 else "back"
    row = caller.row(
        matrix,
        f"the clock jumps {direction} by a day while hedges are due, and again while retries are",
        section=SECTION,
        stored=stored(server),
        recovery=recovery,
    )
    assert (hedged, row.acknowledged) == (20, 40)
    assert all(outcome.hedges and not outcome.retries for outcome in caller.outcomes[:20])
    assert all(outcome.retries or outcome.hedges for outcome in caller.outcomes[20:])
    assert not any(grpc.StatusCode.DEADLINE_EXCEEDED in outcome.refusals for outcome in caller.outcomes)
    assert all(0 <= outcome.latency < PATIENCE for outcome in caller.outcomes)
