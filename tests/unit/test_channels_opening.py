"""When a publisher's connections open: one at once, the others when there is traffic."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import pytest

from tests.unit.fake_channels import ANSWER, run, send, turns

if TYPE_CHECKING:
    from beam_hedge.channels import Channels
    from tests.unit.fake_channels import FakeChannel


def opened(made: list[FakeChannel]) -> list[bool]:
    """Tells which channels were told to connect."""
    return [channel.asked_to_connect > 0 for channel in made]


@pytest.mark.parametrize("connections", [1, 2, 8])
def test_a_publisher_that_nobody_uses_opens_one_connection(connections: int) -> None:
    """A worker whose sink has nothing to do yet costs the service one connection."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        await turns()
        assert opened(made) == [True] + [False] * (connections - 1)
        assert repr(channels).count("not open") == connections

    run(test, connections)


def test_the_first_answer_opens_the_others() -> None:
    """A publisher that sends one request at a time has a second connection when its first hedge is due."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        number, call = send(channels)
        await turns()
        assert number == 0
        assert opened(made) == [True, False, False]
        made[0].answers[0].set_result(ANSWER)
        await call
        await turns()
        assert opened(made) == [True, True, True]

    run(test, 3)


def test_the_second_request_opens_the_others() -> None:
    """The first hedge of all finds its connection, though nothing has been answered yet."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        assert send(channels)[0] == 0
        await turns()
        assert opened(made) == [True, False, False]
        assert send(channels, 0)[0] == 1
        assert opened(made) == [True, True, True]

    run(test, 3)


def test_no_request_waits_for_a_handshake_that_another_connection_spares_it() -> None:
    """While the others are still opening, requests go over the one that is open."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        made[1].connects = False
        assert [send(channels)[0] for _ in range(5)] == [0] * 5
        made[1].connects = True
        send(channels)
        assert [send(channels)[0] for _ in range(3)] == [1] * 3

    run(test)


def test_a_connection_that_was_closed_is_opened_again() -> None:
    """After the service has closed a connection, the next request opens it and takes another one meanwhile."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        for _ in range(2):
            send(channels)
        await turns()
        made[0].state = grpc.ChannelConnectivity.IDLE
        asked = made[0].asked_to_connect
        assert send(channels)[0] == 1
        assert made[0].asked_to_connect == asked + 1
        assert send(channels, 1)[0] == 0

    run(test)


def test_one_refusal_by_the_server_opens_the_others_too() -> None:
    """An error of the service is an answer: there is traffic."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        _, call = send(channels)
        await turns()
        made[0].refuse(grpc.StatusCode.NOT_FOUND)
        await call
        await turns()
        assert opened(made) == [True, True]

    run(test)


async def _open_both(channels: Channels, made: list[FakeChannel]) -> None:
    for _ in range(2):
        send(channels)
    await turns()
    assert opened(made) == [True, True]
    await asyncio.sleep(1)


def test_channels_that_are_ready_are_not_asked_for_each_request() -> None:
    """Asking gRPC how its channels are is not a tenth of what each request of a flood costs."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        await _open_both(channels, made)
        asked = made[0].asked
        for _ in range(100):
            send(channels)
        assert made[0].asked == asked + 1

    run(test)


def test_a_connection_that_was_closed_quietly_is_noticed_soon() -> None:
    """Ten milliseconds after all were ready, no request waits for a handshake that another one spares it."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        await _open_both(channels, made)
        send(channels)
        made[0].state, made[0].connects = grpc.ChannelConnectivity.IDLE, False
        await asyncio.sleep(0.011)
        assert {send(channels)[0] for _ in range(9)} == {1}

    run(test)


def test_a_lost_connection_is_noticed_with_the_next_request() -> None:
    """Those that are sent after a connection was lost with requests out take another one at once."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        await _open_both(channels, made)
        while send(channels)[0] != 0:
            pass
        await turns()
        made[0].state, made[0].connects = grpc.ChannelConnectivity.IDLE, False
        made[0].refuse(grpc.StatusCode.UNAVAILABLE)
        await turns()
        assert {send(channels)[0] for _ in range(9)} == {1}

    run(test)
