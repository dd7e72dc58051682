"""One batch's attempts, from the first send to the outcome: who is sent when, who wins, who is cancelled.

The events of a batch are: a hedge is due, a retry is due, an attempt ended, the caller cancels. Each is a
method that runs on the engine's thread (or, in tests, on the test's own); nothing here waits, locks or
touches the network.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc

from beam_hedge.errors import PublishError
from beam_hedge.interfaces import Refusal
from beam_hedge.outcome import PublishOutcome
from beam_hedge.retry import is_retryable, retry_delay
from beam_hedge.settings import seconds
from beam_hedge.telemetry import telemetry_header
from beam_hedge.token_bucket import TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from beam_hedge.batch import Batch
    from beam_hedge.interfaces import Call, Handle, Trace
    from beam_hedge.policy import Policy

MAX_HEDGE_TIMEOUT = 10.0
# How long cancelled attempts may take to end before nobody waits for them any more.
CANCELLATION_GRACE = 1.0
# Turns of the loop that an answer takes from the socket to this file: gRPC's reader, its call, the call's
# task, the task's callback. A decision that an answer could make needless is put off by that many turns, and
# one to spare.
_TURNS_TO_SEE_ANSWERS = 5


@dataclass(eq=False)
class _Attempt:
    hedge: int
    connection: int
    call: Call
    sent_at: float


class BatchAttempts:
    """The attempts of one batch.

    Args:
        policy: What it shares with the publisher's other batches.
        batch: What to send. Dropped at the outcome, so that a loser that is slow to end holds no payload.
        accepted: When `publish()` accepted the batch, on the policy's clock.
        publish_start_time_ns: The same moment in nanoseconds since the epoch, for the server.
        on_outcome: Called once with what became of the batch; with `None` if the caller cancelled it.
        on_ended: Called once after that, when no attempt is out any more or `CANCELLATION_GRACE` has passed.
        trace: What watches the attempts. Default: nothing.
    """

    def __init__(
        self,
        policy: Policy,
        batch: Batch,
        *,
        accepted: float,
        publish_start_time_ns: int,
        on_outcome: Callable[[PublishOutcome | PublishError | None], object],
        on_ended: Callable[[], object],
        trace: Trace | None = None,
    ) -> None:
        self._policy = policy
        self._batch: Batch | None = batch
        self._topic, self._messages, self._size = batch.topic, batch.messages, len(batch.request)
        self._accepted = accepted
        self._publish_start_time_ns = publish_start_time_ns
        # Dropped with the batch: it leads to the future, which leads back here.
        self._on_outcome: Any = on_outcome
        # Dropped at the end, so that no garbage collector is needed: whoever owns these attempts is called.
        self._on_ended: Any = on_ended
        self._trace = trace
        self.deadline = 0.0
        self._live: list[_Attempt] = []
        self._timers: dict[str, Handle] = {}
        self._failed = False
        self._retries = 0
        self._hedges = 0
        self._hedges_failed = 0
        self._hedges_throttled = 0
        self._refusals: list[grpc.StatusCode] = []

    def start(self, deadline: float | None = None) -> None:
        """Sends the original and sets the clock for the first hedge; begins the total timeout, if need be."""
        now = self._policy.clock.time()
        self.deadline = deadline or now + seconds(self._policy.retry.total_timeout)
        self._send_original(now, avoid=())
        self._set_hedge_timer(now, self._hedge_due)

    def cancel(self) -> None:
        """Ends the batch without an outcome."""
        if self._batch is not None:
            self._resolve(None)

    def _send_original(self, now: float, avoid: Collection[int]) -> None:
        timeout = min(seconds(self._policy.retry.initial_rpc_timeout), self.deadline - now)
        self._send(0, now, timeout, avoid)

    def _send(self, hedge: int, now: float, timeout: float, avoid: Collection[int]) -> None:
        if self._batch is None:
            return
        header = telemetry_header(hedge, self._publish_start_time_ns)
        policy = self._policy
        # A probe that finds its connection dead is saved by its hedge, so it is sent while there is a token.
        probe = not hedge and not avoid and policy.bucket.milli_tokens >= TOKEN
        connection, call = policy.connections.send(self._batch, (header,), timeout, avoid, probe=probe)
        attempt = _Attempt(hedge, connection, call, now)
        self._live.append(attempt)
        call.add_done_callback(functools.partial(self._attempt_ended, attempt))
        if self._trace is not None:
            call.add_done_callback(self._trace.attempt(hedge, connection))

    def _set_hedge_timer(self, now: float, then: Callable[[float], object]) -> None:
        if self._policy.settings is not None:
            due = now + seconds(self._policy.settings.hedge_delay)
            self._set_timer("hedge", due, functools.partial(then, now))

    def _hedge_due(self, previous: float) -> None:
        now = self._policy.clock.time()
        left = self.deadline - now
        if self._failed or left <= 0:
            return
        self._report_overdue(previous)
        if not self._policy.bucket.try_acquire():
            self._hedges_throttled = 1
            return
        self._hedges += 1
        avoid = [attempt.connection for attempt in self._live]
        self._send(self._hedges, now, min(left, MAX_HEDGE_TIMEOUT), avoid)
        self._set_hedge_timer(now, self._hedge_due)

    def _report_overdue(self, since: float) -> None:
        for attempt in self._live:
            if attempt.sent_at <= since:
                self._policy.connections.overdue(attempt.connection, attempt.call)

    def _retry_due(self, failed_connection: int, refusal: Refusal) -> None:
        now = self._policy.clock.time()
        if now >= self.deadline:
            # A busy loop came too late to try again.
            self._fail(refusal)
            return
        self._retries += 1
        self._send_original(now, avoid=(failed_connection,))
        if self._hedges_throttled:
            # There will be no hedge, at whose time it would be looked at.
            self._set_hedge_timer(now, self._report_overdue)

    def _attempt_ended(self, attempt: _Attempt, call: Call) -> None:
        self._live.remove(attempt)
        if self._batch is None:
            if not self._live:
                self._end()
            return
        # Nobody but a resolved batch cancels a call, so a cancelled one was cancelled by gRPC.
        answer = (
            Refusal(grpc.StatusCode.CANCELLED, "the call was cancelled") if call.cancelled() else call.result()
        )
        if not isinstance(answer, Refusal) and len(answer) != self._messages:
            answer = Refusal(
                grpc.StatusCode.INTERNAL,
                f"{len(answer)} ids came back for {self._messages} messages",
                final=True,
            )
        if not isinstance(answer, Refusal):
            self._succeed(attempt.hedge, answer)
            return
        self._refusals.append(answer.status)
        if attempt.hedge:
            self._hedges_failed += 1
        else:
            self._original_refused(attempt, answer)

    def _original_refused(self, attempt: _Attempt, refusal: Refusal) -> None:
        policy = self._policy
        if not refusal.final and is_retryable(refusal.status, refusal.details):
            due = policy.clock.time() + retry_delay(policy.retry, self._retries, policy.random)
            if due < self.deadline:
                self._set_timer("retry", due, functools.partial(self._retry_due, attempt.connection, refusal))
                return
        self._failed = True
        # A success that the loop sees in the same turn wins.
        self._after_answers(functools.partial(self._fail, refusal))

    def _succeed(self, winner: int, message_ids: tuple[str, ...]) -> None:
        self._policy.bucket.refill()
        counts = {**self._counts(), "winner": winner, "latency": self._policy.clock.time() - self._accepted}
        self._resolve(PublishOutcome(self._topic, message_ids, **counts))

    def _fail(self, refusal: Refusal) -> None:
        self._resolve(PublishError(self._topic, refusal.status, refusal.details, **self._counts()))

    def _counts(self) -> dict[str, Any]:
        """Returns what an outcome and an error have in common."""
        return {
            "messages": self._messages,
            "request_bytes": self._size,
            "attempts": 1 + self._retries + self._hedges,
            "retries": self._retries,
            "hedges": self._hedges,
            "hedges_failed": self._hedges_failed,
            "hedges_throttled": self._hedges_throttled,
            "attempts_cancelled": len(self._live),
            "refusals": tuple(self._refusals),
        }

    def _resolve(self, result: PublishOutcome | PublishError | None) -> None:
        self._batch = None
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        on_outcome, self._on_outcome = self._on_outcome, None
        try:
            on_outcome(result)
        finally:
            for attempt in self._live:
                attempt.call.cancel()
            if self._live:
                clock = self._policy.clock
                self._timers["grace"] = clock.call_at(clock.time() + CANCELLATION_GRACE, self._end)
            else:
                self._end()

    def _end(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        on_ended, self._on_ended = self._on_ended, None
        if on_ended is not None:
            on_ended()

    def _set_timer(self, name: str, when: float, callback: Callable[[], object]) -> None:
        self._timers[name] = self._policy.clock.call_at(when, self._after_answers, callback)

    def _after_answers(self, callback: Callable[[], object], turns: int = _TURNS_TO_SEE_ANSWERS) -> None:
        """Runs `callback` once all answers that have reached this process are seen, if none was a success."""
        if self._batch is None:
            return
        if turns:
            self._policy.clock.call_soon(self._after_answers, callback, turns - 1)
        else:
            callback()
