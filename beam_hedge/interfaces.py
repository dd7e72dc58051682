"""What a batch's attempts need of time and of the network: narrow, so that tests can stand in for both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import grpc

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from beam_hedge.batch import Batch

Metadata = tuple[tuple[str, str], ...]

_GIVEN_LOCALLY = (
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.UNAVAILABLE,
)


class Handle(Protocol):
    """Scheduled work that can be called off."""

    def cancel(self) -> None:
        """Calls it off; harmless if it has run."""
        ...


class Clock(Protocol):
    """The part of an event loop that attempts need: monotonic seconds, and work to be done later."""

    def time(self) -> float:
        """Monotonic seconds."""
        ...

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> Handle:
        """Runs `callback(*args)` at `when`."""
        ...

    def call_soon(self, callback: Callable[..., object], *args: object) -> Handle:
        """Runs `callback(*args)` in the next turn."""
        ...


@dataclass(frozen=True)
class Refusal:
    """An attempt that ended without success. A `final` one is not retried, whatever its status."""

    status: grpc.StatusCode
    details: str
    final: bool = False

    @property
    def shows_life(self) -> bool:
        """Whether it came from the server: not from gRPC in this process, which may have heard nothing."""
        return not self.final and self.status not in _GIVEN_LOCALLY


Answer = tuple[str, ...] | Refusal


class Call(Protocol):
    """One request under way: an `asyncio.Future` of its answer, as far as attempts need it."""

    def add_done_callback(self, callback: Callable[..., object], /) -> object:
        """Runs `callback(call)` in a turn after the call has ended."""
        ...

    def cancel(self) -> bool:
        """Asks the call to end soon."""
        ...

    def cancelled(self) -> bool:
        """Whether it ended by being cancelled."""
        ...

    def result(self) -> Answer:
        """The answer of a call that has ended otherwise."""
        ...


class Trace(Protocol):
    """Watches a batch's attempts."""

    def attempt(self, hedge: int, connection: int) -> Callable[[Call], None]:
        """Notes that an attempt was sent; returns what to call when it has ended."""
        ...


class Connections(Protocol):
    """Sends requests, each on one of a few connections."""

    def send(
        self, batch: Batch, metadata: Metadata, timeout: float, avoid: Collection[int], *, probe: bool
    ) -> tuple[int, Call]:
        """Starts a request on a connection that is not one of `avoid`, if there is another.

        Args:
            batch: What to send.
            metadata: Headers of this attempt.
            timeout: Its deadline, in seconds from now.
            avoid: Numbers of connections.
            probe: Whether the request may try a connection that is suspect.

        Returns:
            The number of the connection that it is on, and the call.
        """
        ...

    def overdue(self, connection: int, call: Call) -> None:
        """Notes that a call that is out should have been answered by now."""
        ...
