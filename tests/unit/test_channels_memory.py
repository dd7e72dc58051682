"""What a channel notes of its requests decides where the next one goes, and when it is given up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from beam_hedge.channels import Channels
from beam_hedge.connection import DEAD_AFTER, PROBE_INTERVAL
from tests.unit import virtual_loop
from tests.unit.fake_channels import ANSWER, FakeChannel, run, send, turns

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

PATIENCE = 0.01
SURELY_DEAD = DEAD_AFTER + 1.5


def run_with_patience(test: Callable[[Channels, list[FakeChannel]], Coroutine[Any, Any, None]]) -> None:
    """Runs a test with two channels of which one that owes an old answer lags."""

    async def start() -> None:
        made = [FakeChannel(), FakeChannel()]
        left: list[Any] = [*made]
        await test(Channels(lambda: left.pop(0), 2, PATIENCE), made)

    virtual_loop.run(start())


@pytest.mark.parametrize("probe", [True, False])
def test_a_suspect_is_tried_again_by_those_who_may(probe: bool) -> None:
    """A connection that works again is found, and only by an attempt that a hedge can save."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        _, silent = send(channels)
        _, other = send(channels, 0)
        await turns()
        made[1].answers[0].set_result(ANSWER)
        await other
        channels.overdue(0, silent)
        await asyncio.sleep(PROBE_INTERVAL / 2)
        assert send(channels, probe=probe)[0] == 1
        await asyncio.sleep(PROBE_INTERVAL)
        assert send(channels, probe=probe)[0] == (0 if probe else 1)

    run(test)


def test_each_suspicion_is_counted() -> None:
    """Whoever watches the counter sees how many connections went silent."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        for number in (0, 1):
            _, call = send(channels, 1 - number)
            channels.overdue(number, call)
        assert len(made) == 2
        assert channels.counts.suspected == 2

    run(test)


def test_one_that_owes_an_old_answer_lags() -> None:
    """Nothing more goes where answers have stopped, though both have as much to do."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        send(channels, 1)
        await asyncio.sleep(2 * PATIENCE)
        for _ in range(2):
            send(channels, 0)
        await turns()
        made[1].answers[0].set_result(ANSWER)
        await turns()
        # One is out on either, and connection 0 has rested longer.
        assert channels.out == (1, 1)
        assert send(channels)[0] == 1

    run_with_patience(test)


@pytest.mark.parametrize("end", ["answered", "refused", "expired", "cancelled"])
def test_one_whose_request_has_ended_does_not_lag(end: str) -> None:
    """However a request ends, its connection does not owe its answer any more."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        _, call = send(channels, 1)
        await asyncio.sleep(2 * PATIENCE)
        _, other = send(channels, 0)
        await turns()
        if end == "answered":
            made[0].answers[0].set_result(ANSWER)
        elif end == "cancelled":
            call.cancel()
        else:
            status = grpc.StatusCode.DEADLINE_EXCEEDED if end == "expired" else grpc.StatusCode.ABORTED
            made[0].refuse(status)
        await turns()
        made[1].answers[0].set_result(ANSWER)
        await other
        assert channels.out == (0, 0)
        assert send(channels)[0] == 0

    run_with_patience(test)


def test_one_whose_request_was_cancelled_long_ago_is_not_dead() -> None:
    """A hedge that lost says nothing of its connection, however long the pause after it is."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        for _ in range(2):
            _, call = send(channels, 1)
            await turns()
            call.cancel()
            await asyncio.sleep(DEAD_AFTER)
        send(channels, 1)
        await asyncio.sleep(2)
        assert len(made) == 2

    run(test)


def test_one_that_has_answered_and_then_fallen_silent_is_replaced() -> None:
    """An answer is a sign of life for its own moment, not for what is out behind it."""

    async def test(channels: Channels, made: list[FakeChannel]) -> None:
        _, first = send(channels, 1)
        send(channels, 1)
        await turns()
        made[0].answers[0].set_result(ANSWER)
        await first
        await asyncio.sleep(SURELY_DEAD)
        assert len(made) == 3

    run(test)
