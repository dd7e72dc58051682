"""The log lines about slow and throttled publishing: few, and with all that an operator needs."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from beam_hedge.outcome import PublishOutcome
from beam_hedge.outcome_log import INTERVAL, OutcomeLog
from beam_hedge.testing import FakeClock
from beam_hedge.token_bucket import TokenBucket

TOPIC = "projects/p-test/topics/out"
DELAY = 0.5
SLOW = "publishing is slow"
THROTTLED = "hedging is throttled: no token for a late batch"


class Logged:
    """An outcome log in virtual time, and what it wrote."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, "beam_hedge")
        self._caplog = caplog
        self.clock = FakeClock(start=1000.0)
        self.bucket = TokenBucket(max_tokens=50, refill_ratio=0.1, initial_tokens=3)
        self._log = OutcomeLog(DELAY, self.bucket, self.clock.time)

    def note(self, latency: float, *, throttled: bool = False, **changes: Any) -> None:
        """Notes an outcome."""
        fields: dict[str, Any] = {
            "topic": TOPIC,
            "message_ids": ("1",),
            "attempts": 2,
            "hedges": 1,
            "winner": 0,
            "retries": 0,
            "latency": latency,
            "hedges_failed": 0,
            "hedges_throttled": int(throttled),
            "attempts_cancelled": 0,
            "messages": 1,
            "request_bytes": 10,
        }
        self._log.note(PublishOutcome(**{**fields, **changes}))

    @property
    def records(self) -> list[logging.LogRecord]:
        """All lines so far."""
        return self._caplog.records

    @property
    def facts(self) -> list[dict[str, Any]]:
        """What the lines say, as structure."""
        return [vars(record)["beam_hedge"] for record in self.records]


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Logged:
    """A log that has seen nothing."""
    return Logged(caplog)


def test_ordinary_outcomes_are_not_worth_a_line(logged: Logged) -> None:
    """Publishing that goes well, hedged or not, leaves the log alone."""
    for latency in (0.001, DELAY, 2 * DELAY, 3 * DELAY - 0.001):
        logged.note(latency)
    assert logged.records == []


def test_a_slow_outcome_is_a_warning_with_its_facts(logged: Logged) -> None:
    """An operator reads which topic is slow, how slow, and what budget is left for hedges."""
    logged.note(1.23456, attempts=3, hedges=2)
    logged.note(3 * DELAY, attempts=3, hedges=2)
    [record] = logged.records
    assert (record.name, record.levelname) == ("beam_hedge", "WARNING")
    facts = f"topic={TOPIC}, latency=1.5, attempts=3, hedges=2, tokens=3.0, unwritten=0"
    assert record.getMessage() == f"{SLOW}: {facts}"


@pytest.mark.parametrize("latency", [0.01, DELAY, 3 * DELAY, 100.0])
def test_a_throttled_outcome_is_a_warning_of_its_own_however_slow(logged: Logged, latency: float) -> None:
    """A spent budget is named as the reason even when the batch was slow, too: that can be acted upon."""
    logged.note(latency, throttled=True)
    [record] = logged.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith(f"{THROTTLED}: topic={TOPIC}, latency={latency}, ")


def test_a_record_carries_its_facts_as_structure(logged: Logged) -> None:
    """A log pipeline can filter and plot the lines without taking their text apart."""
    logged.note(2.34567, attempts=4, hedges=3)
    assert logged.facts == [
        {
            "reason": SLOW,
            "topic": TOPIC,
            "latency": 2.346,
            "attempts": 4,
            "hedges": 3,
            "tokens": 3.0,
            "unwritten": 0,
        }
    ]


def test_the_tokens_are_those_of_the_moment(logged: Logged) -> None:
    """The balance in a line is what is left when it is written, not what there was at the start."""
    assert logged.bucket.try_acquire()
    logged.bucket.refill()
    logged.note(9.0)
    assert logged.facts[0]["tokens"] == 2.1


def test_there_is_one_line_an_interval_which_counts_the_others(logged: Logged) -> None:
    """An outage in which every batch is slow writes a line a minute, and hides none of their number."""
    for _ in range(5):
        logged.note(9.0)
    logged.clock.advance(INTERVAL - 0.001)
    logged.note(9.0)
    assert len(logged.records) == 1
    logged.clock.advance(0.001)
    logged.note(9.0)
    logged.note(9.0)
    logged.clock.advance(INTERVAL)
    logged.note(9.0)
    logged.clock.advance(10 * INTERVAL)
    logged.note(9.0)
    assert [facts["unwritten"] for facts in logged.facts] == [0, 5, 1, 0]


def test_the_interval_runs_from_the_last_line(logged: Logged) -> None:
    """Outcomes that are not written do not put off the next line."""
    logged.note(9.0)
    for _ in range(3):
        logged.clock.advance(INTERVAL / 2)
        logged.note(9.0)
    assert [facts["unwritten"] for facts in logged.facts] == [0, 1]


def test_each_reason_has_its_own_interval_and_its_own_count(logged: Logged) -> None:
    """A spent budget is reported though slow batches have just been, and neither counts for the other."""
    logged.note(9.0)
    logged.note(9.0)
    logged.note(9.0, throttled=True)
    logged.note(9.0, throttled=True)
    logged.note(9.0, throttled=True)
    logged.clock.advance(INTERVAL)
    logged.note(9.0)
    logged.note(9.0, throttled=True)
    told = [(facts["reason"], facts["unwritten"]) for facts in logged.facts]
    assert told == [(SLOW, 0), (THROTTLED, 0), (SLOW, 1), (THROTTLED, 2)]


def test_ordinary_outcomes_are_not_counted(logged: Logged) -> None:
    """The count says how many lines were left out, not how much was published."""
    logged.note(9.0)
    for _ in range(100):
        logged.note(0.01)
    logged.clock.advance(INTERVAL)
    logged.note(9.0)
    assert [facts["unwritten"] for facts in logged.facts] == [0, 0]
