"""The publish server's own process. It imports nothing but the standard library, so that it starts at once.

`benchmarks.server` starts it, tells it over a pipe what to do, and asks it what it has seen.
"""

from __future__ import annotations

import asyncio
import functools
import random
import resource
import selectors
import socket
import sys
from collections import Counter
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from benchmarks.disturbances import Brownout, Lane
from benchmarks.http2 import Http2Connection
from benchmarks.publish_messages import count_messages, response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.disturbances import Disturbance, Programme


@dataclass(frozen=True)
class Setup:
    """How the server answers.

    Attributes:
        latencies: Seconds; the n-th request takes the n-th of them, and after the last the first.
        seed: The seed of what is random in disturbances.
    """

    latencies: Sequence[float]
    seed: int


@dataclass(frozen=True)
class Seen:
    """What the server has seen since it started.

    Attributes:
        requests: Publish requests that arrived, hedges and retries included.
        messages: Messages in them.
        by_connection: The requests by the port of the client's end.
        given_up: Requests that the client gave up before they were answered.
        cpu: Seconds of CPU that the server has used.
    """

    requests: int
    messages: int
    by_connection: dict[int, int]
    given_up: int
    cpu: float


class Books:
    """The open connections, and counts. All of the server lives on one event loop."""

    def __init__(self, setup: Setup, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.rng = random.Random(setup.seed)
        self.connections: list[ServedConnection] = []
        self.everywhere: list[tuple[Disturbance, float]] = []
        self.messages = 0
        self.given_up = 0
        self.by_connection: Counter[int] = Counter()
        self._latencies = setup.latencies
        self._requests = 0
        self._brownout: tuple[Brownout, float] | None = None

    def begin(self, call: bytes, port: int) -> tuple[float, bytes]:
        """Notes a request; returns the seconds that its answer takes, and the answer."""
        number = self._requests
        self._requests += 1
        count = count_messages(call)
        self.messages += count
        self.by_connection[port] += 1
        seconds = self._latencies[number % len(self._latencies)]
        if self._brownout is not None:
            brownout, begin = self._brownout
            seconds = max(seconds, brownout.at_least(self.loop.time() - begin))
        return seconds, response(number, count)

    def start(self, programme: Programme) -> None:
        """Has everything in a programme begin at its time."""
        for each in programme:
            if isinstance(each, Brownout):
                self._brownout = each, self.loop.time()
            else:
                self.loop.call_later(each.at, self._disturb, each)

    def _disturb(self, disturbance: Disturbance) -> None:
        end = self.loop.time() + disturbance.seconds
        chosen = self.connections
        if disturbance.connection is None:
            self.everywhere.append((disturbance, end))
        elif chosen:
            chosen = [chosen[disturbance.connection % len(chosen)]]
        for connection in chosen:
            connection.disturb(disturbance, end)

    def seen(self) -> Seen:
        """Returns what there was to see."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        cpu = usage.ru_utime + usage.ru_stime
        return Seen(self._requests, self.messages, dict(self.by_connection), self.given_up, cpu)


class ServedConnection(asyncio.Protocol):
    """One connection of a client: its bytes pass a lane each way, on which they can be held up.

    Args:
        books: The server's.
    """

    def __init__(self, books: Books) -> None:
        self._books = books
        self._answers: dict[int, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:  # noqa: D102
        assert isinstance(transport, asyncio.Transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._port: int = transport.get_extra_info("peername")[1]
        self._transport = transport
        books = self._books
        self._outward = Lane(books.loop, books.rng, self._write)
        self._inward = Lane(books.loop, books.rng, self._receive)
        for disturbance, end in books.everywhere:
            self.disturb(disturbance, end)
        self._http2 = Http2Connection(self._outward.carry, self._call, self._reset)
        books.connections.append(self)

    def disturb(self, disturbance: Disturbance, end: float) -> None:
        """Disturbs both directions until `end`."""
        for lane in (self._inward, self._outward):
            lane.disturb(disturbance.effect, end)

    def data_received(self, data: bytes) -> None:  # noqa: D102
        self._inward.carry(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002, D102
        self._books.connections.remove(self)
        for answer in self._answers.values():
            answer.cancel()

    def _receive(self, data: bytes) -> None:
        try:
            self._http2.receive(data)
        except ValueError as error:
            print(f"publish server: {error}", file=sys.stderr)
            self._transport.abort()

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def _call(self, stream: int, call: bytes) -> None:
        seconds, answer = self._books.begin(call, self._port)
        if seconds:
            self._answers[stream] = self._books.loop.call_later(seconds, self._answer, stream, answer)
        else:
            self._http2.answer(stream, answer)

    def _answer(self, stream: int, answer: bytes) -> None:
        del self._answers[stream]
        self._http2.answer(stream, answer)

    def _reset(self, stream: int) -> None:
        answer = self._answers.pop(stream, None)
        if answer is not None:
            self._books.given_up += 1
            answer.cancel()


async def _serve(parent: Connection) -> None:
    loop = asyncio.get_running_loop()
    books = Books(parent.recv(), loop)
    server = await loop.create_server(functools.partial(ServedConnection, books), "127.0.0.1", 0)
    parent.send(server.sockets[0].getsockname()[1])
    ended = asyncio.Event()

    def listen() -> None:
        try:
            request: Any = parent.recv()
        except EOFError:
            # The parent has closed its end, or is gone.
            loop.remove_reader(parent.fileno())
            ended.set()
            return
        if request is not None:
            books.start(request)
        parent.send(books.seen())

    loop.add_reader(parent.fileno(), listen)
    await ended.wait()


def main() -> None:
    """Serves until the parent closes the pipe whose file descriptor is the only argument."""
    # The usual selector rounds each wait up to a whole millisecond.
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_serve(Connection(int(sys.argv[1]))))
