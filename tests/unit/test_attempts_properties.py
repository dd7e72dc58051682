"""Whatever order answers, errors, timers and cancellations arrive in: one outcome a batch, tokens in range."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import grpc
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.errors import PublishError
from beam_hedge.outcome import PublishOutcome
from beam_hedge.settings import HedgingSettings, RetrySettings
from tests.unit.bench import Bench
from tests.unit.watched_bucket import WatchedBucket

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.bench import Published
    from tests.unit.fakes import FakeCall

_STATUSES = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.CANCELLED)

# Delays and steps share a grid of 50 ms, so that answers, errors and timers often meet in one turn.
_grid = st.integers(min_value=0, max_value=20).map(lambda steps: steps / 20)
_which = st.integers(min_value=0, max_value=50)
_action = st.one_of(
    st.tuples(st.just("publish"), _which),
    st.tuples(st.just("answer"), _which),
    st.tuples(st.just("refuse"), _which, st.sampled_from(_STATUSES)),
    st.tuples(st.just("wrong ids"), _which),
    st.tuples(st.just("call cancelled"), _which),
    st.tuples(st.just("cancel batch"), _which),
    st.tuples(st.just("turns"), st.integers(min_value=1, max_value=4)),
    st.tuples(st.just("wait"), _grid),
)


@st.composite
def _hedging(draw: st.DrawFn) -> HedgingSettings:
    max_tokens = draw(st.integers(min_value=1, max_value=4))
    return HedgingSettings(
        hedge_delay=draw(st.sampled_from((0.1, 0.15, 0.3, 0.5))),
        max_tokens=max_tokens,
        refill_ratio=draw(st.sampled_from((0.2, 0.1, 0.0019))),
        initial_tokens=draw(st.integers(min_value=0, max_value=max_tokens)),
    )


_retry = st.builds(
    RetrySettings,
    initial_rpc_timeout=st.sampled_from((0.55, 1.0, 3.0)),
    total_timeout=st.sampled_from((0.55, 2.0, 3.0)),
    initial_retry_delay=st.sampled_from((0.05, 0.2)),
    retry_delay_multiplier=st.just(2.0),
    max_retry_delay=st.just(0.4),
)


class _Story:
    """Several batches on one bench, driven by a random script and watched at every send."""

    def __init__(
        self, hedging: HedgingSettings, retry: RetrySettings, connections: int, cancel_delay: float
    ) -> None:
        self.bucket = WatchedBucket(hedging.max_tokens, hedging.refill_ratio, hedging.initial_tokens)
        self.bench = Bench(hedging, retry, connections=connections, bucket=self.bucket, jitter=lambda: 1.0)
        self.bench.network.cancel_delay = cancel_delay
        self.bench.network.on_send = self._check_send
        self.batches: list[Published] = []
        self.hedges = 0

    def play(self, script: list[tuple[Any, ...]]) -> None:
        """Goes on with the script inside the loop, so that each action can meet callbacks that are half way."""
        for position, (name, argument, *rest) in enumerate(script):
            if name in ("wait", "turns"):
                go_on = functools.partial(self.play, script[position + 1 :])
                if name == "wait":
                    self.bench.clock.call_later(argument, go_on)
                else:
                    self._after_turns(argument, go_on)
                return
            self._act(name, argument, *rest)

    def _after_turns(self, turns: int, go_on: Callable[[], None]) -> None:
        if turns:
            self.bench.clock.call_soon(self._after_turns, turns - 1, go_on)
        else:
            go_on()

    def _act(self, name: str, which: int, *status: grpc.StatusCode) -> None:
        live = [call for call in self.bench.calls if call.out]
        if name == "publish":
            self.batches.append(self.bench.publish(messages=3, request=b"%d" % len(self.batches)))
        elif name == "cancel batch":
            self.batches[which % len(self.batches)].attempts.cancel()
        elif live:
            self._end_call(name, live[which % len(live)], *status)

    @staticmethod
    def _end_call(name: str, call: FakeCall, status: grpc.StatusCode | None = None) -> None:
        if name == "answer":
            call.answer()
        elif status is not None:
            call.refuse(status)
        elif name == "wrong ids":
            call.answer_ids(2)
        else:
            call.end_as_cancelled()

    def _check_send(self, call: FakeCall) -> None:
        published = next((batch for batch in self.batches if batch.start_time_ns == call.start_time_ns), None)
        assert published is None or not published.results, "sent after the outcome"
        assert call.timeout > 0
        if not call.hedge:
            return
        self.hedges += 1
        assert self.hedges == self.bucket.taken, "a hedge without a token"
        if self.bench.network.connections > 1:
            used = {
                other.connection
                for other in self.bench.calls[:-1]
                if other.start_time_ns == call.start_time_ns and other.out
            }
            assert call.connection not in used or len(used) == self.bench.network.connections

    def check_end(self) -> None:
        for published in self.batches:
            assert len(published.results) == 1
            assert len(published.ended) == 1
            assert 0 <= published.ended[0] - published.results[0][0] <= 1 + 1e-6
        results = [published.results[0][1] for published in self.batches]
        successes = [result for result in results if isinstance(result, PublishOutcome)]
        assert self.bucket.refills == len(successes)
        assert self.bucket.taken == self.hedges
        for published, result in zip(self.batches, results, strict=True):
            calls = [call for call in self.bench.calls if call.start_time_ns == published.start_time_ns]
            hedges = [call.hedge for call in calls if call.hedge]
            assert hedges == list(range(1, len(hedges) + 1))
            assert {call.request for call in calls} == {calls[0].request}
            if isinstance(result, PublishOutcome | PublishError):
                assert result.hedges == len(hedges)
                assert result.attempts == len(calls) == 1 + result.retries + result.hedges
                assert result.hedges_failed + result.attempts_cancelled <= len(calls)
        assert self.bench.clock.pending() == 0
        assert self.bench.clock.unhandled == []


@given(
    hedging=_hedging(),
    retry=_retry,
    connections=st.integers(min_value=1, max_value=3),
    cancel_delay=st.sampled_from((0.0, 0.05, 0.9, 1.5)),
    script=st.lists(_action, max_size=60),
)
def test_every_order_of_events_keeps_every_promise(
    hedging: HedgingSettings,
    retry: RetrySettings,
    connections: int,
    cancel_delay: float,
    script: list[tuple[Any, ...]],
) -> None:
    """Each batch has one outcome and ends once, within 1 s, and its hedges are paid for."""
    story = _Story(hedging, retry, connections, cancel_delay)
    story.play([("publish", 0), *script])
    story.bench.clock.advance(len(script) + 30)
    story.check_end()


@given(
    hedging=_hedging(),
    answers=st.lists(st.tuples(_grid, st.booleans()), min_size=1, max_size=60),
    spacing=st.sampled_from((0.0, 0.05, 0.2)),
)
def test_the_bounds_of_the_bucket_hold_under_load(
    hedging: HedgingSettings, answers: list[tuple[float, bool]], spacing: float
) -> None:
    """Hedges stay within what was published at every moment, and bursts within max_tokens."""
    story = _Story(hedging, RetrySettings(initial_rpc_timeout=20, total_timeout=20), 2, 0.0)
    for delay, answered in answers:
        story.play([("publish", 0)])
        if answered:
            story.bench.clock.call_later(delay, story.bench.calls[-1].answer)
        story.bench.clock.advance(spacing)
    story.bench.clock.advance(60)
    story.check_end()
