"""The open-loop load."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import pytest

from benchmarks.load import Run, Sent, bursts, even, offer, poisson


class Publisher:
    """Answers some of what it is given at once, and fails the rest."""

    def __init__(self, fail_on: int) -> None:
        self.taken: list[list[bytes]] = []
        self._fail_on = fail_on

    def publish(self, messages: list[bytes]) -> concurrent.futures.Future[Any]:
        """Takes a batch."""
        self.taken.append(messages)
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        if len(self.taken) == self._fail_on:
            future.set_exception(RuntimeError("refused"))
        else:
            future.set_result(Outcome(attempts=2, hedges=1))
        return future


class Outcome:
    """What the load generator needs of an outcome."""

    def __init__(self, attempts: int, hedges: int) -> None:
        self.attempts = attempts
        self.hedges = hedges


def test_send_times_meet_the_rate() -> None:
    """A load of so many requests a second is that, in whatever pattern."""
    assert even(4, 1) == [0.0, 0.25, 0.5, 0.75]
    assert bursts(4, 1, 2) == [0.0, 0.0, 0.5, 0.5]
    times = poisson(1000, 10, seed=1)
    assert times == sorted(times)
    assert 9_500 < len(times) < 10_500
    assert times[-1] < 10
    assert times != poisson(1000, 10, seed=2)


def test_everything_is_sent_and_accounted_for() -> None:
    """No request is forgotten, and one that fails is told apart, not counted as quick."""
    publisher: Any = Publisher(fail_on=3)
    run = offer(publisher, even(1000, 0.01), b"payload")
    assert publisher.taken == [[b"payload"]] * 10
    assert (len(run.sent), run.failed, run.hedges) == (10, 1, 9)
    assert run.extra_percent == pytest.approx(90)
    assert all(each.latency >= each.late >= 0 for each in run.sent)


def test_late_answers_and_a_late_generator_are_told_apart() -> None:
    """A reader can see whether a bad figure is the publisher's or the machine's."""
    run = Run([Sent(at=number, latency=number / 100, late=0.001, outcome=None) for number in range(100)])
    assert [run.percentile_ms(percent) for percent in (50, 99, 100)] == pytest.approx([490, 980, 990])
    assert run.late_p99_ms == pytest.approx(1)
    assert run.since(98).latencies_ms == pytest.approx([980, 990])
