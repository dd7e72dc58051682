"""A connection that stays silent is replaced, and what it has out is left to end by itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from beam_hedge.connection import DEAD_AFTER
from tests.unit.fake_channels import ANSWER, run, send, timers, turns

if TYPE_CHECKING:
    from beam_hedge.channels import Channels
    from tests.unit.fake_channels import FakeChannel

# The check looks once a second.
SURELY_DEAD = DEAD_AFTER + 1.5


async def with_a_dead_one(channels: Channels, made: list[FakeChannel]) -> Any:
    """Has connection 0 replaced; returns the call that it has out."""
    _, call = send(channels)
    _, other = send(channels, 0)
    await turns()
    made[1].answers[0].set_result(ANSWER)
    await other
    await asyncio.sleep(SURELY_DEAD)
    assert len(made) == 3
    return call


def test_a_silent_connection_is_replaced_after_30_seconds() -> None:
    """A path that is gone for good costs the publisher no connection for good."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        send(channels)
        await asyncio.sleep(DEAD_AFTER - 1)
        assert len(made) == 2
        await asyncio.sleep(2.5)
        assert len(made) == 3
        assert made[2].asked_to_connect == 1
        assert channels.counts.take() == {"connections_suspected": 0, "connections_replaced": 1}

    run(test)


def test_the_new_one_has_a_number_of_its_own_and_gets_the_traffic() -> None:
    """Whatever is still said of the old connection is not taken for a word about the new one."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        call = await with_a_dead_one(channels, made)
        assert repr(channels) == "<Channels [<connection 2: not open, 0 out>, <connection 1: ready, 0 out>]>"
        assert [send(channels)[0] for _ in range(2)] == [2, 1]
        channels.overdue(0, call)
        channels.overdue(0, call)
        assert "suspect" not in repr(channels)
        assert channels.counts.suspected == 0
        await turns()
        assert len(made[0].requests) == 1
        assert len(made[2].requests) == 1

    run(test)


@pytest.mark.parametrize("end", ["answer", "refusal", "cancellation"])
def test_what_the_old_one_has_out_is_not_failed(end: str) -> None:
    """A batch whose answer comes after all is published, and only then is the old connection closed."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        call = await with_a_dead_one(channels, made)
        assert not call.done()
        assert made[0].closed == 0
        if end == "answer":
            made[0].answers[0].set_result(ANSWER)
        elif end == "refusal":
            made[0].refuse(grpc.StatusCode.DEADLINE_EXCEEDED)
        else:
            call.cancel()
        await turns()
        assert call.done()
        assert call.cancelled() or end != "cancellation"
        if end == "answer":
            assert call.result() == ("7", "8")
        await turns()
        assert [channel.closed for channel in made] == [1, 0, 0]

    run(test)


def test_the_old_one_is_closed_after_its_last_request_only() -> None:
    """None of the requests that wait on a silent connection is cut off by the end of another."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        calls = [send(channels, 1)[1] for _ in range(2)]
        await asyncio.sleep(SURELY_DEAD)
        made[0].answers[0].set_result(ANSWER)
        await turns()
        await turns()
        assert made[0].closed == 0
        assert not calls[1].done()
        made[0].answers[1].set_result(ANSWER)
        await turns()
        await turns()
        assert made[0].closed == 1

    run(test)


def test_a_silent_connection_without_requests_is_closed_at_once() -> None:
    """A connection whose probes were all cancelled is not kept."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        number, call = send(channels)
        await asyncio.sleep(1)
        channels.overdue(number, call)
        call.cancel()
        await asyncio.sleep(SURELY_DEAD)
        # One overdue request before a pause is no proof; a probe that fails as well is.
        assert len(made) == 2
        _, probe = send(channels, 1)
        await asyncio.sleep(1.5)
        probe.cancel()
        await turns()
        assert [channel.closed for channel in made] == [1, 0, 0]
        assert channels.counts.take() == {"connections_suspected": 1, "connections_replaced": 1}

    run(test)


def test_a_connection_that_answers_now_and_then_is_not_replaced() -> None:
    """A service that is slow for minutes keeps its connections."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        for _ in range(10):
            send(channels, 1)
        for number in range(6):
            await asyncio.sleep(DEAD_AFTER - 1)
            made[0].answers[number].set_result(ANSWER)
            await turns()
        assert len(made) == 2

    run(test)


def test_the_replacement_is_replaced_as_well() -> None:
    """While the path stays dead the publisher goes on trying, once in 30 s, and holds no more than it must."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        for _ in range(3):
            send(channels)
            await asyncio.sleep(SURELY_DEAD)
        assert len(made) == 4
        assert channels.counts.replaced == 3
        assert repr(channels) == "<Channels [<connection 3: not open, 0 out>]>"

    run(test, 1)


def test_an_idle_publisher_has_no_timer() -> None:
    """A worker without traffic does not wake up every second."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        assert timers() == 0
        number, call = send(channels)
        await turns()
        assert timers() == 1
        channels.overdue(number, call)
        await asyncio.sleep(10)
        assert timers() == 1
        made[0].answers[0].set_result(ANSWER)
        await asyncio.sleep(2)
        assert timers() == 0
        send(channels)
        assert timers() == 1

    run(test)


def test_an_idle_publisher_with_a_suspect_is_left_alone() -> None:
    """One slow answer before a pause costs no connection, and nothing wakes up in the pause."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        number, call = send(channels)
        await turns()
        channels.overdue(number, call)
        call.cancel()
        await asyncio.sleep(SURELY_DEAD)
        assert len(made) == 2
        assert timers() == 0

    run(test)


def test_short_deadlines_do_not_hide_that_a_connection_is_dead() -> None:
    """Without hedging and with requests that expire one by one, a dead connection is still found."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        for _ in range(3):
            send(channels)
            await asyncio.sleep(10)
            made[0].refuse(grpc.StatusCode.DEADLINE_EXCEEDED)
            await turns()
        assert channels.counts.replaced == 1

    run(test, 1)


def test_closing_closes_the_replaced_ones_too() -> None:
    """A publisher that is closed leaves no connection open, not even one that it had given up."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        call = await with_a_dead_one(channels, made)
        await channels.close()
        await turns()
        assert call.cancelled()
        assert [channel.closed for channel in made] == [1, 1, 1]
        assert timers() == 0

    run(test)
