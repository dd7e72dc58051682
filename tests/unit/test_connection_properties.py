"""Whatever becomes of connections and answers: what attempts may do to them, and that none starves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.connection import lag_patience
from beam_hedge.settings import HedgingSettings, RetrySettings
from tests.unit.bench import Bench

if TYPE_CHECKING:
    from tests.unit.bench import Published
    from tests.unit.fakes import FakeCall

_UNAVAILABLE, _NOT_FOUND = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.NOT_FOUND
_RETRY = RetrySettings(initial_rpc_timeout=2, total_timeout=3, initial_retry_delay=0.05, max_retry_delay=0.2)

_which = st.integers(min_value=0, max_value=50)
_hedging = st.builds(
    HedgingSettings,
    hedge_delay=st.sampled_from((0.1, 0.3)),
    max_tokens=st.just(20),
    refill_ratio=st.just(0.2),
    initial_tokens=st.sampled_from((0, 2, 20)),
)
_step = st.one_of(
    st.tuples(st.just("publish"), _which),
    st.tuples(st.just("publish"), _which),
    st.tuples(st.just("freeze"), _which),
    st.tuples(st.just("thaw"), _which),
    st.tuples(st.just("refuse"), _which, st.sampled_from((_UNAVAILABLE, _NOT_FOUND))),
    st.tuples(st.just("cancel"), _which),
    st.tuples(st.just("latency"), st.sampled_from((0.001, 0.05, 0.15, 0.7))),
    st.tuples(st.just("wait"), st.sampled_from((0.0, 0.02, 0.1, 0.5, 1.3))),
)


class _Story:
    """Batches over connections that freeze and thaw; the rules are checked at every send.

    A connection that is frozen holds its answers back. What it held is answered when it thaws.
    """

    def __init__(self, hedging: HedgingSettings | None, connections: int) -> None:
        self.bench = Bench(hedging, _RETRY, connections=connections)
        self.network = self.bench.network
        self.network.patience = lag_patience(hedging)
        self.network.on_send = self._sent
        self.latency = 0.01
        self.frozen: set[int] = set()
        self.batches: list[Published] = []
        self._first_sends: set[int] = set()
        self._tried: dict[int, float] = {}
        # As it was before a send, which may change it.
        self._suspects: set[int] = set()
        self._watch_choices()

    def _watch_choices(self) -> None:
        send = self.network.send

        def watched(*arguments: Any, **more: Any) -> Any:
            self._suspects = {each.number for each in self.network.known if each.suspect}
            return send(*arguments, **more)

        self.network.send = watched  # type: ignore[method-assign]

    def play(self, script: list[tuple[Any, ...]]) -> None:
        """Does what the script says."""
        for name, argument, *status in script:
            live = [call for call in self.bench.calls if call.out]
            if name == "publish":
                self.batches.append(self.bench.publish())
            elif name == "freeze":
                self.frozen.add(argument % self.network.connections)
            elif name == "thaw":
                self.thaw(argument % self.network.connections)
            elif name == "refuse" and live:
                live[argument % len(live)].refuse(*status)
            elif name == "cancel" and self.batches:
                self.batches[argument % len(self.batches)].attempts.cancel()
            elif name == "latency":
                self.latency = argument
            elif name == "wait":
                self.bench.clock.advance(argument)
            assert all(each.out >= 0 for each in self.network.known)

    def thaw(self, number: int) -> None:
        """Lets a connection go on."""
        self.frozen.discard(number)
        for call in self.bench.calls:
            if call.out and call.connection == number:
                call.answer()

    def _sent(self, call: FakeCall) -> None:
        self.bench.clock.call_later(self.latency, self._answer, call)
        if call.hedge:
            self._check_hedge(call)
        elif call.start_time_ns not in self._first_sends:
            self._first_sends.add(call.start_time_ns)
            self._check_first_send(call)

    def _answer(self, call: FakeCall) -> None:
        if call.connection not in self.frozen:
            call.answer()

    def _check_hedge(self, call: FakeCall) -> None:
        used = {
            other.connection
            for other in self.bench.calls[:-1]
            if other.start_time_ns == call.start_time_ns and other.out
        }
        assert call.connection not in used or len(used) == self.network.connections, "shared with its own batch"

    def _check_first_send(self, call: FakeCall) -> None:
        if call.connection not in self._suspects or len(self._suspects) == self.network.connections:
            return
        now = self.bench.clock.time()
        assert now - self._tried.get(call.connection, -10) >= 1 - 1e-6, "more than one original a second"
        self._tried[call.connection] = now


@given(hedging=_hedging, connections=st.integers(1, 4), script=st.lists(_step, max_size=80))
def test_hedges_keep_apart_and_suspects_get_one_original_a_second(
    hedging: HedgingSettings, connections: int, script: list[tuple[Any, ...]]
) -> None:
    """A stall holds one attempt of a batch, and few batches meet it; in the end nothing is out."""
    story = _Story(hedging, connections)
    story.play(script)
    story.bench.clock.advance(10)
    assert [each.out for each in story.network.known] == [0] * connections
    assert all(len(batch.results) == 1 for batch in story.batches)
    assert story.bench.clock.unhandled == []


@given(connections=st.integers(1, 4), script=st.lists(_step, max_size=80))
def test_without_hedging_nothing_is_ever_suspect(connections: int, script: list[tuple[Any, ...]]) -> None:
    """`settings=None` spreads requests over all connections, whatever they do."""
    story = _Story(None, connections)
    for step in script:
        story.play([step])
        assert not any(each.suspect for each in story.network.known)
    story.bench.clock.advance(10)
    assert [each.out for each in story.network.known] == [0] * connections


@given(hedging=_hedging, connections=st.integers(1, 4), script=st.lists(_step, max_size=60))
def test_when_all_are_suspect_all_still_get_traffic(
    hedging: HedgingSettings, connections: int, script: list[tuple[Any, ...]]
) -> None:
    """When nothing answers any more, no connection is given up: whichever comes back first is found."""
    story = _Story(hedging, connections)
    story.play(script)
    story.play([("freeze", number) for number in range(connections)])
    # Until what was out at the freeze has ended, and each connection has been late once.
    for _ in range(60):
        story.play([("publish", 0), ("wait", 0.1)])
    assert all(each.suspect for each in story.network.known)
    before = len(story.bench.calls)
    for _ in range(2 * connections):
        story.play([("publish", 0), ("wait", 0.1)])
    originals = {call.connection for call in story.bench.calls[before:] if not call.hedge}
    assert originals == set(range(connections))
    for number in range(connections):
        story.thaw(number)
    after = [story.bench.publish() for _ in range(3)]
    story.bench.clock.advance(1)
    assert all(batch.outcome.message_ids for batch in after)
