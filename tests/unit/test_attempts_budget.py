"""C12, C24, C25 in virtual time: what an outage, two tokens and an empty bucket are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from beam_hedge.settings import HedgingSettings, RetrySettings
from tests.unit.bench import Bench
from tests.unit.watched_bucket import WatchedBucket

if TYPE_CHECKING:
    from tests.unit.bench import Published
    from tests.unit.fakes import FakeCall

STALL = 20.0
BATCHES = 200


class Service:
    """Answers each call after 5 ms, unless it stalls; then calls wait for its recovery."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._stalled: list[FakeCall] | None = None
        bench.network.on_send = self._called

    def stall(self) -> None:
        """Stops answering."""
        self._stalled = []

    def recover(self) -> None:
        """Answers what is still out, and everything from now on."""
        stalled, self._stalled = self._stalled or [], None
        for call in stalled:
            call.answer()

    def _called(self, call: FakeCall) -> None:
        if self._stalled is None:
            self._bench.clock.call_later(0.005, call.answer)
        else:
            self._stalled.append(call)


def hedges(bench: Bench) -> int:
    """Counts the hedges that were sent."""
    return sum(call.hedge > 0 for call in bench.calls)


@pytest.mark.parametrize(
    ("spread", "rpc_timeout"),
    [(0.0, 60.0), (0.05, 5.0)],
    ids=["all at once, one try each", "one by one, with retries"],
)
def test_c12_an_outage_drains_the_bucket_and_hedging_stops_until_the_service_recovers(
    spread: float, rpc_timeout: float
) -> None:
    """However long a service stands still it gets 50 hedges and no more, and later ones must be earned anew."""
    settings = HedgingSettings(hedge_delay=1.0, max_tokens=50, refill_ratio=0.1)
    # It checks at every step that there are 0 to 50 tokens, and that each is paid for.
    bucket = WatchedBucket(50, 0.1)
    bench = Bench(settings, RetrySettings(initial_rpc_timeout=rpc_timeout), bucket=bucket)
    service = Service(bench)
    for _ in range(10_000):
        bench.publish()
        bench.clock.advance(0.005)
    assert (bucket.milli_tokens, bucket.refills, hedges(bench)) == (50_000, 10_000, 0)

    service.stall()
    begun = bench.clock.time()
    late: list[Published] = []
    for _ in range(BATCHES):
        late.append(bench.publish())
        bench.clock.advance(spread)
    balances = []
    while (left := begun + STALL - bench.clock.time()) > 0:
        bench.clock.advance(min(0.25, left))
        balances.append(bucket.milli_tokens)
    assert hedges(bench) == 50
    # Time alone earns nothing.
    assert balances == sorted(balances, reverse=True)
    assert bucket.milli_tokens == 0
    assert bucket.refills == 10_000

    service.recover()
    # Retries may still wait for their time.
    bench.clock.advance(120)
    assert all(published.outcome.messages == 1 for published in late)
    assert sum(published.outcome.hedges for published in late) == 50
    # A batch whose chain was stopped for want of a token is not hedged when there are tokens again.
    assert all(published.outcome.hedges_throttled for published in late)
    assert bucket.milli_tokens == BATCHES * 100

    service.stall()
    slow = bench.publish()
    bench.clock.advance(1.0)
    assert hedges(bench) == 51
    bench.calls[-1].answer()
    bench.clock.advance(2.0)
    assert (slow.outcome.winner, slow.outcome.hedges, slow.outcome.hedges_throttled) == (1, 1, 0)
    assert bucket.milli_tokens == BATCHES * 100 - 1_000 + 100
    assert bench.clock.unhandled == []


def test_c24_two_tokens_are_two_hedges() -> None:
    """However late the original is, two tokens are worth two hedges; its answer then earns the refill."""
    settings = HedgingSettings(hedge_delay=0.5, max_tokens=2, refill_ratio=0.1, initial_tokens=2)
    bench = Bench(settings, bucket=WatchedBucket(2, 0.1, 2))
    published = bench.publish()
    bench.at(5 * 0.5, bench.calls[0].answer)
    bench.run_to(10)
    assert bench.sends == [(0.0, 0), (0.5, 1), (1.0, 2)]
    assert published.resolved_at == 2.5
    assert (published.outcome.winner, published.outcome.hedges, published.outcome.attempts) == (0, 2, 3)
    assert (published.outcome.hedges_throttled, published.outcome.attempts_cancelled) == (1, 2)
    assert bench.bucket.milli_tokens == 100


def test_c25_an_empty_bucket_is_one_request() -> None:
    """A new publisher has earned nothing yet: a slow publish is one request, and earns a tenth of a token."""
    settings = HedgingSettings(hedge_delay=0.5, refill_ratio=0.1)
    bench = Bench(settings, bucket=WatchedBucket(50, 0.1))
    published = bench.publish()
    bench.at(5 * 0.5, bench.calls[0].answer)
    bench.run_to(10)
    assert bench.sends == [(0.0, 0)]
    assert (published.outcome.attempts, published.outcome.hedges) == (1, 0)
    assert published.outcome.hedges_throttled == 1
    assert bench.bucket.milli_tokens == 100
