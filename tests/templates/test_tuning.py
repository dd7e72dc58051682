"""The page on tuning: its computed figures are true, and what it names exists."""

from __future__ import annotations

import re
from typing import Any

import pytest

from beam_hedge import HedgingSettings, RetrySettings
from beam_hedge.metrics import COUNTERS, DISTRIBUTIONS
from beam_hedge.testing import LatencyProfile
from templates.metadata import HERE

TEXT = (HERE.parent / "docs" / "tuning.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (no hedging|[\d.]+ m?s) \| ([\d,]+) ms \| ([\d,]+) ms \| ([\d.]+) % \|$", re.MULTILINE)
PROFILE = LatencyProfile.parse("tail")


def rows() -> list[Any]:
    """Returns the lines of the table of delays: the delay in seconds, and the figures."""
    found = []
    for delay, *figures in _ROW.findall(TEXT):
        number, _, unit = delay.partition(" ")
        seconds = None if delay == "no hedging" else float(number) * {"s": 1, "ms": 0.001}[unit]
        found.append(pytest.param(seconds, *(float(each.replace(",", "")) for each in figures), id=delay))
    return found


def slower(seconds: float) -> float:
    """Returns the share of requests that take longer."""
    return sum(probability for probability, latency in PROFILE.parts if latency > seconds + 1e-9)


def unanswered(seconds: float, delay: float | None) -> float:
    """Returns the share of batches without an answer after some time, with as many hedges as they want."""
    share, sent = 1.0, 0.0
    while sent <= seconds + 1e-9:
        share *= slower(seconds - sent)
        if delay is None:
            break
        sent += delay
    return share


@pytest.mark.parametrize(("delay", "p99", "p999", "extra"), rows())
def test_figures_that_can_be_computed_are_right(
    delay: float | None, p99: float, p999: float, extra: float
) -> None:
    """What the page promises of a delay is what that delay does."""
    for allowed, milliseconds in ((0.01, p99), (0.001, p999)):
        at = milliseconds / 1000
        assert unanswered(at, delay) <= allowed + 1e-9 < unanswered(at - 0.001, delay)
    hedges = 0.0 if delay is None else sum(unanswered(count * delay, delay) for count in range(1, 100))
    assert 100 * hedges == pytest.approx(extra, abs=0.005)


def test_all_figures_are_looked_at() -> None:
    """The check above does not pass because it found nothing to check."""
    assert len(rows()) == 4


def test_the_defaults_are_the_librarys() -> None:
    """Who reasons from the defaults that the page names reasons from those that are in force."""
    settings = HedgingSettings()
    assert (settings.hedge_delay, settings.refill_ratio, settings.max_tokens) == (1.0, 0.1, 50)
    assert "(1 s, 0.1, 50)" in TEXT
    assert f"50 / 0.1 = {settings.max_tokens / settings.refill_ratio:.0f} " in TEXT
    assert RetrySettings().initial_rpc_timeout == 60.0
    assert "(60 s by default)" in " ".join(TEXT.split())


def test_counters_are_called_what_the_page_calls_them() -> None:
    """Whoever looks for a counter that the page names finds it."""
    known = {*COUNTERS, *DISTRIBUTIONS, *(f"{name}_MAX" for name in DISTRIBUTIONS)}
    named = set(re.findall(r"`((?:hedges|batches|messages|attempts|publish|bytes|retries)_\w+)`", TEXT))
    assert len(named) >= 7
    assert named - known == set()
