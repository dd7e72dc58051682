"""Channels without a network, for the tests of a publisher's connections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
from google.pubsub_v1.types import PublishResponse

from beam_hedge.batch import seal
from beam_hedge.channels import Channels
from tests.unit import virtual_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

TOPIC = "projects/p-test/topics/out"
BATCH = seal(TOPIC, [b"a", b"b"])
METADATA = (("x-test", "1"),)
ANSWER: bytes = PublishResponse.pb()(message_ids=["7", "8"]).SerializeToString()

_READY, _IDLE = grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.IDLE


class FakeChannel:
    """A channel whose requests the test ends. It is ready once it was told to connect or has a request.

    Attributes:
        requests: Each request, its deadline and its metadata.
        answers: The futures that the calls wait for.
        method: What its stub calls.
        state: What it says of itself; the test may change it.
        connects: Whether it becomes ready; False stands for a handshake that takes its time.
        asked: How often it was asked for its state.
        asked_to_connect: How often it was told to connect while it was not ready.
        closed: How often it was closed.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[bytes, float, list[tuple[str, str]]]] = []
        self.answers: list[asyncio.Future[bytes]] = []
        self.method = ""
        self.state = _IDLE
        self.connects = True
        self.asked = 0
        self.asked_to_connect = 0
        self.closed = 0

    def unary_unary(self, method: str) -> Callable[..., asyncio.Future[bytes]]:
        """Makes a stub."""
        self.method = method

        def call(request: bytes, *, timeout: float, metadata: Any) -> asyncio.Future[bytes]:
            assert not self.closed, "a request on a closed channel"
            self.requests.append((request, timeout, list(metadata)))
            self.answers.append(asyncio.get_running_loop().create_future())
            return self.answers[-1]

        return call

    def get_state(self, *, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """Says whether it is ready, and connects if it is told to: by the next time that it is asked."""
        self.asked += 1
        state = self.state
        if try_to_connect and state is not _READY:
            self.asked_to_connect += 1
            if self.connects:
                self.state = _READY
        return state

    def refuse(self, status: grpc.StatusCode, request: int = -1) -> None:
        """Ends a request with an error, by default the last one."""
        nothing = grpc.aio.Metadata()
        self.answers[request].set_exception(grpc.aio.AioRpcError(status, nothing, nothing, details="no"))

    async def close(self) -> None:
        """Closes it, and cancels what it has out."""
        self.closed += 1
        for answer in self.answers:
            answer.cancel()


def run(test: Callable[[Channels, list[FakeChannel]], Coroutine[Any, Any, None]], connections: int = 2) -> None:
    """Runs a test on a loop in virtual time, with channels that reach nobody."""

    async def start() -> None:
        made: list[FakeChannel] = []

        def make_channel() -> Any:
            made.append(FakeChannel())
            return made[-1]

        await test(Channels(make_channel, connections), made)

    virtual_loop.run(start())


def send(channels: Channels, *avoid: int, probe: bool = False) -> tuple[int, Any]:
    """Sends a request with a long deadline; returns its connection's number and its call."""
    return channels.send(BATCH, METADATA, 60.0, avoid, probe=probe)


async def turns() -> None:
    """Lets what is ready run, without any time passing."""
    for _ in range(5):
        await asyncio.sleep(0)


def timers() -> int:
    """Returns how many timers the loop still has."""
    loop = asyncio.get_running_loop()
    return sum(not each.cancelled() for each in loop._scheduled)  # type: ignore[attr-defined]
