"""A channel that cannot connect is replaced by one that tries at once, as long as somebody publishes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc

from tests.unit.fake_channels import ANSWER, run, send, turns

if TYPE_CHECKING:
    from beam_hedge.channels import Channels
    from tests.unit.fake_channels import FakeChannel

_IN_VAIN = grpc.ChannelConnectivity.TRANSIENT_FAILURE


def break_down(channel: FakeChannel) -> None:
    """Has a channel's tries to connect fail from now on."""
    channel.connects = False
    channel.state = _IN_VAIN


async def try_again(channels: Channels, made: list[FakeChannel]) -> None:
    """Sends a request that fails at once, as one on a channel that cannot connect does."""
    number, call = send(channels)
    await turns()
    made[number].refuse(grpc.StatusCode.UNAVAILABLE)
    await call
    await turns()


def test_one_that_has_tried_in_vain_for_five_seconds_is_replaced() -> None:
    """After an outage of DNS a publisher does not wait for the next of gRPC's ever rarer lookups."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        await try_again(channels, made)
        for channel in made:
            break_down(channel)
        await try_again(channels, made)
        await asyncio.sleep(4.9)
        await try_again(channels, made)
        assert len(made) == 2
        await asyncio.sleep(0.2)
        number, call = send(channels)
        assert len(made) == 4
        assert number in (2, 3)
        await turns()
        made[number].answers[0].set_result(ANSWER)
        assert await call == ("7", "8")
        await turns()
        assert [channel.closed for channel in made] == [1, 1, 0, 0]
        assert channels.counts.replaced == 2

    run(test)


def test_the_new_ones_are_given_time_as_well() -> None:
    """A long outage costs a few connections a minute, not one for each request."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        await try_again(channels, made)
        for _ in range(60):
            for channel in made:
                break_down(channel)
            await try_again(channels, made)
            await asyncio.sleep(0.5)
        assert 10 <= len(made) <= 2 + 2 * 30 / 5

    run(test)


def test_one_that_has_connected_meanwhile_stays() -> None:
    """A server that was restarted finds its clients' connections where they were."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        await try_again(channels, made)
        for channel in made:
            break_down(channel)
        await try_again(channels, made)
        for channel in made:
            channel.state = grpc.ChannelConnectivity.READY
        await asyncio.sleep(3)
        await try_again(channels, made)
        for channel in made:
            break_down(channel)
        await asyncio.sleep(3)
        await try_again(channels, made)
        await asyncio.sleep(3)
        await try_again(channels, made)
        assert len(made) == 2

    run(test)
