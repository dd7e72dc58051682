"""The connections of a publisher: what is sent on them, what their answers become, and what they have out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge.interfaces import Refusal
from tests.unit.fake_channels import ANSWER, BATCH, METADATA, run, send, timers, turns

if TYPE_CHECKING:
    from beam_hedge.channels import Channels
    from tests.unit.fake_channels import FakeChannel


def test_a_request_carries_its_bytes_deadline_and_headers() -> None:
    """The service gets the sealed bytes, and each header that routes a request and names the client."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        number, call = channels.send(BATCH, METADATA, 1.5, avoid=(), probe=True)
        await turns()
        (channel, other) = made
        assert number == 0
        assert channel.method == "/google.pubsub.v1.Publisher/Publish"
        ((request, timeout, metadata),) = channel.requests
        assert request is BATCH.request
        assert timeout == 1.5
        headers = dict(metadata)
        assert headers["x-goog-request-params"] == "topic=projects/p-test/topics/out"
        assert "gapic/" in headers["x-goog-api-client"]
        assert headers["x-test"] == "1"
        assert other.requests == []
        channel.answers[0].set_result(ANSWER)
        assert await call == ("7", "8")

    run(test)


@pytest.mark.parametrize("details", ["not found", None])
def test_a_status_becomes_a_refusal(details: str | None) -> None:
    """What the service says is what decides about a retry, also if it says nothing."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        _, call = send(channels)
        await turns()
        nothing = grpc.aio.Metadata()
        made[0].answers[0].set_exception(
            grpc.aio.AioRpcError(grpc.StatusCode.NOT_FOUND, nothing, nothing, details=details)
        )
        assert await call == Refusal(grpc.StatusCode.NOT_FOUND, details or "")

    run(test)


@pytest.mark.parametrize("answer", [ValueError("odd"), b"\xff no response"])
def test_whatever_else_goes_wrong_is_final(answer: Exception | bytes) -> None:
    """An answer that makes no sense ends the batch with an error, and never leaves it waiting."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        _, call = send(channels)
        await turns()
        if isinstance(answer, Exception):
            made[0].answers[0].set_exception(answer)
        else:
            made[0].answers[0].set_result(answer)
        refusal = await call
        assert isinstance(refusal, Refusal)
        assert (refusal.status, refusal.final) == (grpc.StatusCode.INTERNAL, True)
        assert ("ValueError: odd" if isinstance(answer, Exception) else "DecodeError") in refusal.details

    run(test)


def test_a_request_that_grpc_does_not_take_is_final() -> None:
    """An error while a request is made ends the batch, too, and leaves no connection loaded."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        made[0].closed = 1
        _, call = send(channels)
        refusal = await call
        assert isinstance(refusal, Refusal)
        assert (refusal.status, refusal.final) == (grpc.StatusCode.INTERNAL, True)
        assert "AssertionError: a request on a closed channel" in refusal.details
        assert channels.out == (0, 0)

    run(test)


def test_a_connection_that_takes_no_request_is_not_always_the_next_choice() -> None:
    """A connection on which requests fail before they are out does not look idle, and attract them all."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        for _ in range(2):
            send(channels)
        await turns()
        for answer in (*made[0].answers, *made[1].answers):
            answer.set_result(ANSWER)
        await turns()
        made[0].closed = 1
        for _ in range(20):
            await asyncio.sleep(0.02)
            send(channels)
            await turns()
            for answer in made[1].answers:
                if not answer.done():
                    answer.set_result(ANSWER)
            await turns()
        assert len(made[1].requests) >= 10

    run(test)


def test_what_is_out_is_counted_until_it_ends() -> None:
    """A connection is as loaded as it has requests out, whichever way they end."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        send(channels)
        send(channels)
        calls = [send(channels) for _ in range(4)]
        # The first two went to the first connection, since the other one was not ready yet.
        assert [number for number, _ in calls] == [1, 1, 0, 1]
        assert repr(channels) == "<Channels [<connection 0: ready, 3 out>, <connection 1: ready, 3 out>]>"
        await turns()
        made[0].answers[0].set_result(b"")
        made[0].answers[1].set_exception(ValueError())
        made[0].refuse(grpc.StatusCode.NOT_FOUND)
        await turns()
        assert repr(channels) == "<Channels [<connection 0: ready, 0 out>, <connection 1: ready, 3 out>]>"
        assert send(channels, 0)[0] == 1
        calls[0][1].cancel()
        await turns()
        assert repr(channels) == "<Channels [<connection 0: ready, 0 out>, <connection 1: ready, 3 out>]>"

    run(test)


def test_a_request_that_is_cancelled_before_it_starts_is_cancelled_and_not_counted_for_ever() -> None:
    """Nothing goes on behind a cancelled request, and its connection does not look loaded."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        _, call = send(channels)
        assert "connection 0: ready, 1 out" in repr(channels)
        call.cancel()
        await turns()
        assert call.cancelled()
        assert "connection 0: ready, 0 out" in repr(channels)
        assert made[0].answers[0].cancelled()

    run(test)


@pytest.mark.parametrize("connections", [1, 2, 8])
def test_closing_closes_every_connection_once(connections: int) -> None:
    """A publisher that is closed, even twice, leaves no connection open."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        await channels.close()
        await channels.close()
        assert [channel.closed for channel in made] == [1] * connections

    run(test, connections)


def test_requests_that_are_out_when_it_closes_end_without_harm() -> None:
    """Whatever still ends after the close is taken note of, and raises nothing in the engine."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        calls = [send(channels)[1] for _ in range(3)]
        await turns()
        await channels.close()
        await turns()
        assert all(call.cancelled() for call in calls)
        assert [channel.closed for channel in made] == [1, 1]
        assert timers() == 0

    run(test)


def test_a_request_that_comes_after_the_close_fails() -> None:
    """A batch that was on its way when its publisher closed gets an end; closed channels are not asked."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        await channels.close()
        asked = [channel.asked_to_connect for channel in made]
        _, call = send(channels)
        await turns()
        answer = call.result()
        assert isinstance(answer, Refusal)
        assert (answer.status, answer.final) == (grpc.StatusCode.CANCELLED, True)
        assert [channel.asked_to_connect for channel in made] == asked
        assert timers() == 0

    run(test)
