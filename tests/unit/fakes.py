"""A network without a network: calls that the test answers, refuses or lets expire, in virtual time."""

from __future__ import annotations

import asyncio
import base64
import math
from typing import TYPE_CHECKING

import grpc
from google.pubsub_v1.types import PubsubClientTelemetry

from beam_hedge.connection import Connection, choose_connection
from beam_hedge.interfaces import Refusal
from beam_hedge.telemetry import HEADER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from beam_hedge.batch import Batch
    from beam_hedge.interfaces import Answer, Call, Metadata
    from beam_hedge.testing import FakeClock

_FAR_AWAY = 10_000


def decode_telemetry(metadata: Metadata) -> tuple[int, int]:
    """Returns the attempt count and the start time in nanoseconds of the telemetry header."""
    telemetry = PubsubClientTelemetry.pb().FromString(base64.b64decode(dict(metadata)[HEADER], validate=True))
    operation = telemetry.publish_operation
    return operation.hedged_attempt_count, operation.publish_start_time.ToNanoseconds()


class FakeCall:
    """One request under way. It expires at its deadline unless the test ends it earlier.

    Attributes:
        sent_at: Virtual time of the send, in seconds.
        hedge: What the telemetry header says: 0 for the original and its retries.
        start_time_ns: What the telemetry header says; the tests give each batch its own.
        request: The payload.
        timeout: The deadline, in seconds from the send.
        avoid: The connections that the attempt was to keep off.
        connection: The one that it took.
        cancelled_at: When the first cancellation came, if any.
        ended_at: When it ended, if it has.
    """

    def __init__(
        self,
        connections: FakeConnections,
        batch: Batch,
        metadata: Metadata,
        timeout: float,
        *,
        avoid: Collection[int],
        connection: int,
    ) -> None:
        self._clock = connections.clock
        self._cancel_delay = connections.cancel_delay
        self._future: asyncio.Future[Answer] = asyncio.Future(loop=self._clock)  # type: ignore[arg-type]
        self.sent_at = self._clock.time()
        self.hedge, self.start_time_ns = decode_telemetry(metadata)
        self.request = batch.request
        self._messages = batch.messages
        self.timeout = timeout
        self.avoid = tuple(avoid)
        self.connection = connection
        self.cancelled_at: float | None = None
        self.ended_at: float | None = None
        self._deadline = self._clock.call_later(
            min(max(timeout, 0.0), _FAR_AWAY) if connections.keeps_deadlines else _FAR_AWAY,
            self.refuse,
            grpc.StatusCode.DEADLINE_EXCEEDED,
            "deadline exceeded",
        )

    @property
    def out(self) -> bool:
        """Whether it has not ended."""
        return not self._future.done()

    @property
    def answered(self) -> bool:
        """Whether the server has ended it."""
        if self.out or self.cancelled():
            return False
        answer = self.result()
        return not isinstance(answer, Refusal) or answer.shows_life

    def answer(self, *message_ids: str) -> None:
        """Ends it well; ids are made up unless the test gives some."""
        if self.out:
            made_up = tuple(f"{self.sent_at:g}-{self.hedge}-{number}" for number in range(self._messages))
            self._end(message_ids or made_up)

    def answer_ids(self, count: int) -> None:
        """Ends it with so many ids, however many messages were sent."""
        if self.out:
            self._end(tuple(map(str, range(count))))

    def refuse(self, status: grpc.StatusCode, details: str = "", *, final: bool = False) -> None:
        """Ends it with an error."""
        if self.out:
            self._end(Refusal(status, details, final))

    def end_as_cancelled(self) -> None:
        """Ends it as a cancelled call, whoever asked for that."""
        if self.out:
            self._deadline.cancel()
            self._future.cancel()
            self.ended_at = self._clock.time()

    @property
    def expired(self) -> bool:
        """Whether its time was up."""
        if self.out or self.cancelled():
            return False
        answer = self.result()
        return isinstance(answer, Refusal) and answer.status is grpc.StatusCode.DEADLINE_EXCEEDED

    def add_done_callback(self, callback: Callable[..., object], /) -> None:
        """Calls back, on a later turn, when it has ended."""
        self._future.add_done_callback(lambda _: callback(self))

    def cancel(self) -> bool:
        """Asks it to end, which takes the network's `cancel_delay`; returns whether it was still out."""
        if not self.out:
            return False
        if self.cancelled_at is None:
            self.cancelled_at = self._clock.time()
            # The rank of a cancelled task: never within the call to cancel().
            if self._cancel_delay:
                self._clock.call_later(self._cancel_delay, self.end_as_cancelled)
            else:
                self._clock.call_soon(self.end_as_cancelled)
        return True

    def cancelled(self) -> bool:
        """Returns whether it ended as cancelled."""
        return self._future.cancelled()

    def result(self) -> Answer:
        """Returns its answer."""
        return self._future.result()

    def _end(self, answer: Answer) -> None:
        self._deadline.cancel()
        self._future.set_result(answer)
        self.ended_at = self._clock.time()

    def __repr__(self) -> str:
        state = "out" if self.out else f"ended {self.ended_at:g}"
        return (
            f"<FakeCall {self.hedge} on {self.connection} at {self.sent_at:g} for {self.timeout:g} s, {state}>"
        )


class FakeConnections:
    """Records what is sent, on connections that the library's own rule picks.

    Attributes:
        clock: The virtual time.
        calls: All calls, in the order in which they were sent.
        cancel_delay: How long a cancelled call takes to end, in seconds; 0 is the next turn.
        patience: Seconds by which an answer may come out of turn before its connection lags.
        keeps_deadlines: Whether calls expire at their deadline; False: their end is as late as it gets.
        on_send: Told of each call as it is sent.
        known: What is known of each connection, by its number.
    """

    def __init__(self, clock: FakeClock, connections: int = 2) -> None:
        self.clock = clock
        self.calls: list[FakeCall] = []
        self.cancel_delay = 0.0
        self.patience = math.inf
        self.keeps_deadlines = True
        self.on_send: Callable[[FakeCall], object] = lambda _: None
        self.known = [Connection(number) for number in range(connections)]

    @property
    def connections(self) -> int:
        """How many there are."""
        return len(self.known)

    def send(
        self, batch: Batch, metadata: Metadata, timeout: float, avoid: Collection[int], *, probe: bool
    ) -> tuple[int, FakeCall]:
        """Starts a request; see `beam_hedge.interfaces.Connections`."""
        now = self.clock.time()
        chosen = choose_connection(self.known, avoid, now=now, probe=probe, patience=self.patience)
        call = FakeCall(self, batch, metadata, timeout, avoid=avoid, connection=chosen.number)
        chosen.sent(call, now)
        call.add_done_callback(lambda _: self._ended(chosen, call))
        self.calls.append(call)
        self.on_send(call)
        return chosen.number, call

    def overdue(self, connection: int, call: Call) -> None:
        """Notes that a call should have been answered; see `beam_hedge.interfaces.Connections`."""
        self.known[connection].overdue(call, self.clock.time())

    def _ended(self, connection: Connection, call: FakeCall) -> None:
        if call.answered:
            connection.answered(call, self.clock.time())
        else:
            connection.ended(call, expired=call.expired)
