"""What the long outage measures, and what it objects to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.long_outage import OUTAGES, Outage, broken, run

FINE = Outage(hedges=50, published=200, stored=900, sent=900, before=5.0, after=[40.0, 9.0, 5.0, 5.0])


@pytest.mark.parametrize(
    ("outage", "said"),
    [
        (FINE, []),
        (replace(FINE, hedges=51), ["51 hedges were sent; there were 50 tokens"]),
        (replace(FINE, published=199), ["199 of 200 batches, 900 of 900 messages came"]),
        (replace(FINE, stored=899), ["200 of 200 batches, 899 of 900 messages came"]),
        (replace(FINE, after=[11.0] * 4 + [5.0]), ["the median latency is normal after 2.0 s"]),
        (replace(FINE, after=[11.0] * 8), ["the median latency is 11.0 ms in the end"]),
    ],
)
def test_each_broken_promise_is_found(outage: Outage, said: list[str]) -> None:
    """What the program says of an outage is what happened in it."""
    assert broken(outage) == said


@pytest.mark.parametrize("name", OUTAGES)
def test_an_outage_is_survived(name: str) -> None:
    """The program itself works: all comes through, within the budget."""
    outage = run(OUTAGES[name], 0.3, window=0.05)
    assert (outage.published, outage.stored) == (200, outage.sent)
    assert outage.hedges <= 50
    assert outage.before > 0
    assert len(outage.after) == 8
