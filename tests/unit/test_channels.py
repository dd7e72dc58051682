"""The connections of a publisher: what is sent on them, what their answers become, and what they have out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.pubsub_v1.types import PublishResponse

from beam_hedge.batch import seal
from beam_hedge.channels import Channels
from beam_hedge.interfaces import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

TOPIC = "projects/p-test/topics/out"
BATCH = seal(TOPIC, [b"a", b"b"])
METADATA = (("x-test", "1"),)


class _Channel:
    """A channel whose requests the test ends.

    Attributes:
        requests: Each request, its deadline and its metadata.
        answers: The futures that the calls wait for.
        closed: How often it was closed.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[bytes, float, list[tuple[str, str]]]] = []
        self.answers: list[asyncio.Future[bytes]] = []
        self.method = ""
        self.closed = 0

    def unary_unary(self, method: str) -> Callable[..., asyncio.Future[bytes]]:
        """Makes a stub."""
        self.method = method

        def call(request: bytes, *, timeout: float, metadata: Any) -> asyncio.Future[bytes]:
            self.requests.append((request, timeout, list(metadata)))
            self.answers.append(asyncio.get_running_loop().create_future())
            return self.answers[-1]

        return call

    async def close(self) -> None:
        """Closes it."""
        self.closed += 1


def _run(test: Callable[[Channels, list[_Channel]], Coroutine[Any, Any, None]], connections: int = 2) -> None:
    """Runs a test on a loop, with channels that reach nobody."""

    async def run() -> None:
        made: list[_Channel] = []

        def make_channel() -> Any:
            made.append(_Channel())
            return made[-1]

        await test(Channels(make_channel, connections), made)

    asyncio.run(run())


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_request_carries_its_bytes_deadline_and_headers() -> None:
    """The service gets the sealed bytes, and each header that routes a request and names the client."""

    async def test(channels: Channels, made: list[_Channel]) -> None:
        index, call = channels.send(BATCH, METADATA, 1.5, avoid=())
        await _turns()
        (channel, other) = made
        assert index == 0
        assert channel.method == "/google.pubsub.v1.Publisher/Publish"
        ((request, timeout, metadata),) = channel.requests
        assert request is BATCH.request
        assert timeout == 1.5
        headers = dict(metadata)
        assert headers["x-goog-request-params"] == "topic=projects/p-test/topics/out"
        assert "gapic/" in headers["x-goog-api-client"]
        assert headers["x-test"] == "1"
        assert other.requests == []
        channel.answers[0].set_result(PublishResponse.pb()(message_ids=["7", "8"]).SerializeToString())
        assert await call == ("7", "8")

    _run(test)


@pytest.mark.parametrize("details", ["not found", None])
def test_a_status_becomes_a_refusal(details: str | None) -> None:
    """What the service says is what decides about a retry, also if it says nothing."""

    async def test(channels: Channels, made: list[_Channel]) -> None:
        _, call = channels.send(BATCH, METADATA, 1.0, avoid=())
        await _turns()
        nothing = grpc.aio.Metadata()
        made[0].answers[0].set_exception(
            grpc.aio.AioRpcError(grpc.StatusCode.NOT_FOUND, nothing, nothing, details=details)
        )
        assert await call == Refusal(grpc.StatusCode.NOT_FOUND, details or "")

    _run(test)


@pytest.mark.parametrize("answer", [ValueError("odd"), b"\xff no response"])
def test_whatever_else_goes_wrong_is_final(answer: Exception | bytes) -> None:
    """An answer that makes no sense ends the batch with an error, and never leaves it waiting."""

    async def test(channels: Channels, made: list[_Channel]) -> None:
        _, call = channels.send(BATCH, METADATA, 1.0, avoid=())
        await _turns()
        if isinstance(answer, Exception):
            made[0].answers[0].set_exception(answer)
        else:
            made[0].answers[0].set_result(answer)
        refusal = await call
        assert isinstance(refusal, Refusal)
        assert (refusal.status, refusal.final) == (grpc.StatusCode.INTERNAL, True)
        assert ("ValueError: odd" if isinstance(answer, Exception) else "DecodeError") in refusal.details

    _run(test)


def test_what_is_out_is_counted_until_it_ends() -> None:
    """A connection is as loaded as it has requests out, whichever way they end."""

    async def test(channels: Channels, made: list[_Channel]) -> None:
        calls = [channels.send(BATCH, METADATA, 1.0, avoid=()) for _ in range(4)]
        assert [index for index, _ in calls] == [0, 1, 0, 1]
        assert channels.out == (2, 2)
        assert repr(channels) == "<Channels 2 connections, requests out: 2, 2>"
        await _turns()
        made[0].answers[0].set_result(b"")
        made[0].answers[1].set_exception(ValueError())
        await _turns()
        assert channels.out == (0, 2)
        assert channels.send(BATCH, METADATA, 1.0, avoid=(0,))[0] == 1
        calls[1][1].cancel()
        await _turns()
        assert channels.out == (0, 2)

    _run(test)


def test_a_request_that_is_cancelled_before_it_starts_is_not_counted_for_ever() -> None:
    """A connection does not look loaded because of requests that were never made."""

    async def test(channels: Channels, made: list[_Channel]) -> None:
        _, call = channels.send(BATCH, METADATA, 1.0, avoid=())
        call.cancel()
        await _turns()
        assert call.cancelled()
        assert channels.out == (0, 0)
        assert made[0].requests == []

    _run(test)


@pytest.mark.parametrize("connections", [1, 2, 8])
def test_closing_closes_every_connection_once(connections: int) -> None:
    """A publisher that is closed, even twice, leaves no connection open."""

    async def test(channels: Channels, made: list[_Channel]) -> None:
        await channels.close()
        await channels.close()
        assert [channel.closed for channel in made] == [1] * connections

    _run(test, connections)
