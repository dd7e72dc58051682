"""A machine that publishes, answers, refuses, cancels, closes and lets time pass in any order; audits all."""

from __future__ import annotations

import functools
import sys
import weakref
from typing import TYPE_CHECKING, Any

import grpc
from google.cloud.pubsub_v1.publisher.exceptions import FlowControlLimitError
from google.cloud.pubsub_v1.types import LimitExceededBehavior, PublishFlowControl
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from beam_hedge.batch import seal
from beam_hedge.settings import HedgingSettings, RetrySettings
from tests.model import audit
from tests.model.leases import Leases
from tests.model.process import VirtualProcess, channels_of
from tests.model.witness import Published, Witness
from tests.unit.configs import make

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.publisher import HedgingPublisher
    from tests.unit.fakes import FakeCall

TOPICS = ("projects/p-test/topics/first", "projects/p-test/topics/second")
LIMIT = 6
_LONGEST = 6.0
_STEP = 0.05

_which = st.integers(min_value=0, max_value=99)
_seldom = st.sampled_from((False, False, False, True))
# Delays share a grid with the settings, so that answers, errors and timers often meet in one turn.
_delay = st.sampled_from((0.0, 0.0, 0.05, 0.1, 0.15))
_refusal = st.sampled_from(
    (
        (grpc.StatusCode.UNAVAILABLE, ""),
        (grpc.StatusCode.INVALID_ARGUMENT, ""),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "quota"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "message larger than max"),
        (grpc.StatusCode.INVALID_ARGUMENT, ""),
        (grpc.StatusCode.PERMISSION_DENIED, ""),
    )
)
# About a linger.
_pause = st.sampled_from((0.0, 20.0, 41.0, 61.0))
# How many messages each of the callers publishes at once.
_handful = st.lists(st.integers(1, 3), min_size=1, max_size=3)
_hedging = st.builds(
    lambda tokens, delay, ratio: HedgingSettings(delay, tokens[0], ratio, tokens[1]),
    tokens=st.sampled_from(((2, 0), (1, 1), (9, 9), (9, 9))),
    delay=st.sampled_from((0.1, 0.15)),
    ratio=st.sampled_from((0.2, 0.1)),
)
_retry = st.builds(
    functools.partial(RetrySettings, retry_delay_multiplier=2.0, max_retry_delay=0.4),
    initial_rpc_timeout=st.sampled_from((0.55, 1.0, 3.0)),
    total_timeout=st.sampled_from((0.55, 2.0, _LONGEST)),
    initial_retry_delay=st.sampled_from((0.05, 0.2)),
)


class Machine(RuleBasedStateMachine):
    """Two sinks of one worker process; the second one's flow control raises at `LIMIT` messages."""

    @initialize(
        hedging=_hedging,
        retry=_retry,
        connections=st.integers(1, 3),
        cancel_delay=st.sampled_from((0.0, 1.5, 0.05, 1.5)),
    )
    def begin(
        self, hedging: HedgingSettings, retry: RetrySettings, connections: int, cancel_delay: float
    ) -> None:
        """Starts the process."""
        self.witness = Witness(hedging, retry)
        self.process = VirtualProcess(self.witness.sent)
        self.process.cancel_delay = cancel_delay
        self.limited = PublishFlowControl(LIMIT, 10**6, LimitExceededBehavior.ERROR)
        plain: dict[str, Any] = {"settings": hedging, "retry_settings": retry, "connections": connections}
        configs = [make(topic=TOPICS[0], **plain), make(topic=TOPICS[1], **plain, flow_control=self.limited)]
        self.leases = Leases(self.process, configs)
        for number in range(len(TOPICS)):
            self.leases.acquire(number)
            # Only callers who have published before may share a request.
            self.publish(number, [1, 1, 1], alone=True, cancel=False, answer=0.0, then=0.0)
            self.answer(0, 0.0, everything=True)

    @precondition(lambda self: self.leases.held)
    @rule(
        which=_which,
        handful=_handful,
        alone=st.sampled_from((False, False, True)),
        cancel=_seldom,
        answer=st.sampled_from((0.0, 0.0, 0.1, 0.15)),
        then=st.sampled_from((0.0, 0.1, 0.15, 0.3)),
    )
    def publish(
        self, which: int, handful: list[int], *, alone: bool, cancel: bool, answer: float, then: float
    ) -> None:
        """Threads of a sink publish before the engine has its turn; perhaps one is answered soon."""
        made = self.leases.publisher(which)
        for caller, messages in enumerate(handful):
            self.process.caller = caller
            self._publish(made, messages, may_share=not alone)
        if cancel:
            self.cancel(-1)
        self.process.engine.loop.run_ready()
        if answer:
            self._on_a_call(0, answer, self._stored)
        self.wait(then)

    def _publish(self, made: HedgingPublisher, messages: int, *, may_share: bool) -> None:
        number = len(self.witness.published)
        batch = seal(str(made._topic), [b"%d.%d" % (number, index) for index in range(messages)])
        fits = made._topic == TOPICS[0] or audit.has_room(self.witness, made, messages, LIMIT)
        try:
            future = made.publish_batch(batch, may_share=may_share)
        except FlowControlLimitError:
            assert not fits, "refused although there is room"
            return
        assert fits, "more is out than flow control allows"
        now = self.process.now
        published = Published(number, made, weakref.ref(batch), messages, len(batch.request), now, future)
        self.witness.published.append(published)
        self.witness.unsettled.append(published)
        future.add_done_callback(lambda _: published.done.append(self.process.now))

    def _calls(self, delay: float) -> list[FakeCall]:
        return [
            call
            for request in self.witness.active
            # What the server says at the very moment of a hedge comes after it.
            if delay or all(hedge.sent_at != self.process.now for hedge in request.hedges)
            for call in request.calls
            if call.out and call.connection not in request.channels.frozen
        ]

    def _on_a_call(self, which: int, delay: float, action: Callable[[FakeCall], Callable[[], object]]) -> None:
        """Does something to a call that is out; behind the timers that are set for the same moment."""
        calls = self._calls(delay)
        if calls:
            # The newest attempts are the most interesting.
            self.process.engine.loop.call_later(delay, action(calls[-1 - which % len(calls)]))
            self.process.engine.loop.run_ready()

    def _stored(self, call: FakeCall) -> Callable[[], None]:
        return functools.partial(call.answer, *self.witness.ids_of(call))

    @rule(which=_which, delay=_delay, everything=_seldom)
    def answer(self, which: int, delay: float, *, everything: bool) -> None:
        """The server stores a request and says so, now or soon; or all that has reached it, now."""
        if everything:
            for call in self._calls(0.0):
                self._stored(call)()
            self.process.engine.loop.run_ready()
        self._on_a_call(which, delay, self._stored)

    @rule(which=_which, delay=_delay, refusal=_refusal)
    def refuse(self, which: int, delay: float, refusal: tuple[grpc.StatusCode, str]) -> None:
        """The server refuses a request, now or soon."""
        self._on_a_call(which, delay, lambda call: functools.partial(call.refuse, *refusal))

    @rule(which=_which)
    def cancel(self, which: int) -> None:
        """A caller loses interest."""
        waiting = [each for each in self.witness.unsettled if not each.done]
        if waiting:
            waiting[which % len(waiting)].future.cancel()
            self.process.engine.loop.run_ready()

    @rule(which=_which, trouble=st.sampled_from(("no ids", "too many ids", "lost", "frozen", "thawed")))
    def disturb(self, which: int, trouble: str) -> None:
        """The server gives too few ids, or too many; gRPC gives a request up; a connection freezes or thaws."""
        if trouble == "lost":
            self._on_a_call(which, 0.0, lambda call: call.end_as_cancelled)
        elif trouble.endswith("ids"):
            count = 0 if trouble == "no ids" else 10
            self._on_a_call(which, 0.0, lambda call: functools.partial(call.answer_ids, count))
        else:
            channels = channels_of(self.process.publishers[-1 - which % 2])
            change = channels.frozen.add if trouble == "frozen" else channels.frozen.discard
            change(which % channels.connections)

    @rule(seconds=st.sampled_from((0.05, 0.1, 0.15, 0.5, 1.2)))
    def wait(self, seconds: float) -> None:
        """Time passes, and all is looked at on the way."""
        for _ in range(round(seconds / _STEP)):
            self.process.engine.loop.advance(_STEP)
            self.everything_adds_up()

    @rule(
        which=_which,
        change=st.sampled_from(("acquire", "release", "drop", "close", "death", "pauses", "pauses")),
        pauses=st.lists(_pause, min_size=3, max_size=4),
    )
    def change_users(self, which: int, change: str, pauses: list[float]) -> None:
        """DoFns are set up, torn down (twice), dropped, or come and go; a publisher closes; the engine dies."""
        if change == "acquire":
            self.leases.acquire(which % len(TOPICS))
        elif change in ("release", "drop") and self.leases.held:
            self.leases.end(which, twice=change == "release")
        elif change == "close":
            self.leases.close(self.process.publishers[-1 - which % 2])
            self.process.engine.loop.run_ready()
        elif change == "death" and which % 2:
            self.witness.forget()
            self.leases.engine_dies()
        elif change == "pauses":
            self._come_and_go(which % len(TOPICS), pauses)

    def _come_and_go(self, number: int, pauses: list[float]) -> None:
        for position, pause in enumerate(pauses):
            if position % 2:
                self.leases.acquire(number)
            else:
                self.leases.end_all(number)
            self.process.engine.loop.advance(pause)
            self.everything_adds_up()

    @invariant()
    def everything_adds_up(self) -> None:
        """The whole account, after each step."""
        if hasattr(self, "process"):
            audit.check(self.witness, self.process)
            self.leases.check()

    def teardown(self) -> None:
        """Lets all deadlines pass: in the end nothing is out, and nobody waits."""
        if not hasattr(self, "process"):
            return
        try:
            # An objection that was raised before is what is to be seen.
            if sys.exc_info()[0] is None:
                self.leases.end_all()
                self.process.engine.loop.advance(2 * _LONGEST + 100)
                self.everything_adds_up()
                audit.check_end(self.witness, self.process)
        finally:
            self.process.end()
