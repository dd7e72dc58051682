"""The log line when publishing is slow or hedging is out of tokens: there, structured, and rare."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from beam_hedge import HedgingSettings, WriteToPubSubHedged, outcome_log
from beam_hedge.testing import Reply
from tests.beam.pipelines import RUNNERS, batches_of, run_pipeline
from tests.server.serving import TOPIC, by_attempt, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = b"payload-that-nobody-may-log"
NO_TOKENS = HedgingSettings(hedge_delay=0.1)
TOKENS = HedgingSettings(hedge_delay=0.1, initial_tokens=50)
THROTTLED = "hedging is throttled: no token for a late batch"
SLOW = "publishing is slow"
FACTS = {"reason", "topic", "latency", "attempts", "hedges", "tokens", "unwritten"}


@pytest.fixture(autouse=True)
def no_payloads(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Look at all that the library logs in a test: it must not hold a payload."""
    caplog.set_level(logging.DEBUG, logger="beam_hedge")
    yield
    assert SECRET.decode() not in caplog.text


def ours(caplog: pytest.LogCaptureFixture) -> list[Any]:
    """Returns the library's own records."""
    return [record for record in caplog.records if record.name.startswith("beam_hedge")]


@pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
def test_a_throttled_pipeline_says_so_once(runner: str, caplog: pytest.LogCaptureFixture) -> None:
    """Of many late batches without a token one is logged, with what a user needs to judge it."""
    with serving(Reply(delay=0.25)):
        transform = WriteToPubSubHedged(TOPIC, NO_TOKENS, batch_settings=batches_of(1))
        run_pipeline([SECRET] * 12, transform, RUNNERS[runner])
    [record] = ours(caplog)
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(THROTTLED)
    assert record.beam_hedge.keys() == FACTS
    assert record.beam_hedge["reason"] == THROTTLED
    assert record.beam_hedge["topic"] == TOPIC
    assert record.beam_hedge["latency"] >= 0.2
    assert (record.beam_hedge["attempts"], record.beam_hedge["hedges"]) == (1, 0)
    # Whoever has no structured logs reads the same.
    assert all(f"{name}={record.beam_hedge[name]}" in record.getMessage() for name in FACTS - {"reason"})


def test_a_slow_batch_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """A batch that took several hedge delays, though it was hedged, is worth a line."""
    late = Reply(delay=0.5)
    with serving(by_attempt(late, late)):
        run_pipeline([SECRET], WriteToPubSubHedged(TOPIC, TOKENS))
    [record] = ours(caplog)
    assert record.beam_hedge["reason"] == SLOW
    assert record.beam_hedge["latency"] >= 0.3
    assert record.beam_hedge["hedges"] >= 1
    assert record.beam_hedge["attempts"] == 1 + record.beam_hedge["hedges"]


def test_a_quick_pipeline_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """As long as all is well the log stays empty."""
    with serving():
        transform = WriteToPubSubHedged(TOPIC, HedgingSettings(hedge_delay=10), batch_settings=batches_of(1))
        run_pipeline([SECRET] * 30, transform)
    assert ours(caplog) == []


def test_the_next_minute_of_a_pipeline_is_logged_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interval is what limits the lines, not the life of the pipeline."""
    monkeypatch.setattr(outcome_log, "INTERVAL", 0.0)
    with serving(Reply(delay=0.25)) as server:
        transform = WriteToPubSubHedged(TOPIC, NO_TOKENS, batch_settings=batches_of(1))
        run_pipeline([SECRET] * 3, transform)
        assert server.ledger().requests == 3
    assert [record.beam_hedge["reason"] for record in ours(caplog)] == [THROTTLED] * 3
