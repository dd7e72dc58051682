"""What watches a batch: every attempt is noted when it is sent and ended when it ends, once each."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge.settings import HedgingSettings
from tests.unit.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.interfaces import Call
    from beam_hedge.testing import FakeClock


class FakeTrace:
    """Writes down what it is told.

    Attributes:
        noted: Of each attempt, which hedge it is and on which connection.
        ended: Of each attempt, when it was ended, and whether as cancelled; one entry for each time.
    """

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.noted: list[tuple[int, int]] = []
        self.ended: list[list[tuple[float, bool]]] = []

    def attempt(self, hedge: int, connection: int) -> Callable[[Call], None]:
        """Notes an attempt."""
        self.noted.append((hedge, connection))
        self.ended.append([])
        return functools.partial(self._end, len(self.ended) - 1)

    def _end(self, attempt: int, call: Call) -> None:
        # Raises if the call has not ended.
        cancelled = call.cancelled() or not call.result()
        self.ended[attempt].append((round(self._clock.time(), 6), cancelled))


def watched(connections: int = 2) -> tuple[Bench, FakeTrace]:
    """Makes a bench and a trace."""
    bench = Bench(HedgingSettings(hedge_delay=1.0, initial_tokens=50), connections=connections)
    return bench, FakeTrace(bench.clock)


def test_a_batch_without_trouble_is_one_attempt() -> None:
    """A trace of a quick publish has one span below it, which ends with the answer."""
    bench, trace = watched()
    bench.publish(trace=trace)
    assert (trace.noted, trace.ended) == ([(0, 0)], [[]])
    bench.at(0.2, bench.calls[0].answer)
    bench.run_to(5)
    assert (trace.noted, trace.ended) == ([(0, 0)], [[(0.2, False)]])


def test_each_try_and_each_hedge_is_an_attempt_of_its_own() -> None:
    """A trace shows the retries and the hedges of a batch, each on its connection and with its own end."""
    bench, trace = watched(connections=3)
    bench.publish(trace=trace)
    bench.at(0.5, bench.calls[0].refuse, grpc.StatusCode.UNAVAILABLE)
    bench.run_to(1.0)
    bench.at(1.5, bench.calls[2].refuse, grpc.StatusCode.ABORTED)
    bench.run_to(2.0)
    bench.at(2.3, bench.calls[3].answer)
    bench.run_to(20)
    # The original, its retry, two hedges: the first of them fails, the second wins.
    assert [hedge for hedge, _ in trace.noted] == [0, 0, 1, 2]
    assert trace.noted == [(call.hedge, call.connection) for call in bench.calls]
    assert trace.ended == [[(0.5, False)], [(2.3, True)], [(1.5, False)], [(2.3, False)]]


@pytest.mark.parametrize("how", ["success", "failure", "cancellation"])
def test_the_attempts_that_are_out_at_the_end_are_ended_once(how: str) -> None:
    """However a batch ends, no span of its losers stays open, and none is ended twice."""
    bench, trace = watched()
    published = bench.publish(trace=trace)
    bench.run_to(3.5)
    if how == "success":
        bench.calls[1].answer()
    elif how == "failure":
        bench.calls[0].refuse(grpc.StatusCode.PERMISSION_DENIED)
    else:
        published.attempts.cancel()
    bench.run_to(60)
    assert [hedge for hedge, _ in trace.noted] == [0, 1, 2, 3]
    assert [[at for at, _ in ends] for ends in trace.ended] == [[3.5]] * 4
    ended_itself = {"success": 1, "failure": 0, "cancellation": None}[how]
    assert [ends[0][1] for ends in trace.ended] == [number != ended_itself for number in range(4)]


@pytest.mark.parametrize("cancel_delay", [0.0, 0.4, 5.0])
def test_a_loser_that_is_slow_to_end_is_ended_when_it_does(cancel_delay: float) -> None:
    """A span lasts as long as its request, even past the time for which anybody waits."""
    bench, trace = watched()
    bench.network.cancel_delay = cancel_delay
    published = bench.publish(trace=trace)
    bench.run_to(1.2)
    bench.calls[1].answer()
    bench.run_to(20)
    assert trace.ended == [[(round(1.2 + cancel_delay, 6), True)], [(1.2, False)]]
    assert len(published.ended) == 1


def test_each_batch_has_its_own_trace() -> None:
    """Attempts of batches that are out together are not mixed up."""
    bench, first = watched()
    second = FakeTrace(bench.clock)
    bench.publish(trace=first)
    bench.publish(trace=second)
    bench.publish()
    bench.run_to(1.0)
    for call in bench.calls:
        call.answer()
    bench.run_to(20)
    for trace in (first, second):
        assert [hedge for hedge, _ in trace.noted] == [0, 1]
        assert [len(ends) for ends in trace.ended] == [1, 1]
    assert len(bench.calls) == 6
