"""The channels of a publisher: attempts go out on them, and those that stay silent are replaced."""

from __future__ import annotations

import asyncio
import functools
import itertools
import math
from typing import TYPE_CHECKING

import grpc
from google.api_core.gapic_v1 import routing_header
from google.pubsub_v1.types import PublishResponse

from beam_hedge.channel_factory import CLIENT_INFO
from beam_hedge.connection import Connection, choose_connection
from beam_hedge.connection_counts import ConnectionCounts
from beam_hedge.interfaces import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from beam_hedge.batch import Batch
    from beam_hedge.interfaces import Answer, Call, Metadata

    Stub = grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
    _Call = grpc.aio.UnaryUnaryCall[bytes, bytes]

_PUBLISH = "/google.pubsub.v1.Publisher/Publish"
_parse_response = PublishResponse.pb().FromString
_CLIENT_HEADER = CLIENT_INFO.to_grpc_metadata()
_CHECK_INTERVAL = 1.0
# Asking gRPC how a channel is takes 10 us; asking all of them for each request, a tenth of its cost.
_LOOK_INTERVAL = 0.01
# gRPC looks up a name that could not be resolved after ever longer pauses, up to two minutes, which no option
# shortens. A new channel looks at once.
_REOPEN_AFTER = 5.0
_NO_CONNECTION = -1
_CLOSED = Refusal(grpc.StatusCode.CANCELLED, "the publisher is closed", final=True)


class _Channel(Connection):
    """A connection, and the channel that it is. It opens with the first request, or when it is told to."""

    def __init__(self, number: int, channel: grpc.aio.Channel) -> None:
        super().__init__(number)
        self.channel = channel
        # The payload is bytes already. The generated client's own stub would encode it once more for each
        # attempt.
        self.publish: Stub = channel.unary_unary(_PUBLISH)
        self._unreachable_since: float | None = None

    def look(self, now: float, *, connect: bool) -> None:
        """Finds out whether it is ready, and has it connect if it is not and shall."""
        state = self.channel.get_state(try_to_connect=connect)
        self.ready = state is grpc.ChannelConnectivity.READY
        if self.ready:
            self._unreachable_since = None
        elif state is grpc.ChannelConnectivity.TRANSIENT_FAILURE and self._unreachable_since is None:
            self._unreachable_since = now

    def is_unreachable(self, now: float) -> bool:
        """Whether it has tried in vain to connect for so long that a new one should."""
        return self._unreachable_since is not None and now - self._unreachable_since >= _REOPEN_AFTER


class Channels:
    """A few connections, each a TCP connection of its own, and replaced if it stays silent or cannot connect.

    Lives on the engine's loop: made, used and closed there. The first connection opens at once, the others in
    the background with the second request or the first answer, whichever comes first: a hedge should find
    one that is open, and a publisher that nobody uses needs no more than one.

    Args:
        make_channel: Makes a channel with a TCP connection of its own.
        connections: How many to keep.
        patience: Seconds by which an answer may come out of turn before its connection lags.
    """

    def __init__(
        self, make_channel: Callable[[], grpc.aio.Channel], connections: int, patience: float = math.inf
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._make_channel = make_channel
        self._patience = patience
        self._numbers = itertools.count()
        self._channels = [self._make() for _ in range(connections)]
        self._replaced: list[_Channel] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._check: asyncio.TimerHandle | None = None
        self._in_use = False
        self._looked = -math.inf
        self._closed = False
        self.counts = ConnectionCounts()
        self._channels[0].look(self._loop.time(), connect=True)

    @property
    def out(self) -> tuple[int, ...]:
        """How many requests each connection has out."""
        return tuple(channel.out for channel in self._channels)

    def send(
        self, batch: Batch, metadata: Metadata, timeout: float, avoid: Collection[int], *, probe: bool
    ) -> tuple[int, asyncio.Task[Answer]]:
        """Starts a publish request; see `beam_hedge.interfaces.Connections`."""
        if self._closed:
            return self._refuse(_CLOSED)
        now = self._loop.time()
        if now - self._looked >= _LOOK_INTERVAL or not self._all_ready():
            self._look(now)
        self._in_use = True
        channel = choose_connection(self._channels, avoid, now=now, probe=probe, patience=self._patience)
        routing = routing_header.to_grpc_metadata((("topic", batch.topic),))
        headers = (routing, _CLIENT_HEADER, *metadata)
        try:
            # Not in the task, which would begin it a turn of the loop later.
            call = channel.publish(batch.request, timeout=timeout, metadata=headers)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong must end the batch, never leave it waiting
            # The next one tries another.
            channel.last_sent = now
            return self._refuse(_unexpected(error))
        task = self._loop.create_task(_answer(call))
        channel.sent(task, now)
        # Not in the coroutine: one that is cancelled before its first step runs none of its code.
        task.add_done_callback(functools.partial(self._ended, channel, call))
        if self._check is None:
            self._check = self._loop.call_later(_CHECK_INTERVAL, self._replace_dead)
        return channel.number, task

    def _refuse(self, refusal: Refusal) -> tuple[int, asyncio.Task[Answer]]:
        return _NO_CONNECTION, self._loop.create_task(_give(refusal))

    def overdue(self, connection: int, call: Call) -> None:
        """Notes that a call should have been answered; see `beam_hedge.interfaces.Connections`."""
        now = self._loop.time()
        self.counts.suspected += sum(
            channel.overdue(call, now) for channel in self._channels if channel.number == connection
        )

    def _all_ready(self) -> bool:
        return all(channel.ready for channel in self._channels)

    def _look(self, now: float) -> None:
        self._looked = now
        for index, channel in enumerate(self._channels):
            channel.look(now, connect=self._in_use)
            if channel.is_unreachable(now):
                self._replace(index, now)

    def _ended(self, channel: _Channel, call: _Call, task: asyncio.Task[Answer]) -> None:
        if task.cancelled():
            call.cancel()
            channel.ended(task, expired=False)
        elif isinstance(answer := task.result(), Refusal) and not answer.shows_life:
            # It may have been lost with its connection: the next request finds out.
            channel.ready = False
            channel.ended(task, expired=answer.status is grpc.StatusCode.DEADLINE_EXCEEDED)
        else:
            now = self._loop.time()
            channel.answered(task, now)
            if not self._all_ready():
                self._look(now)
        self._close_unused()

    def _replace_dead(self) -> None:
        """Opens a fresh channel for each connection that is dead; what it has out may still end there.

        Runs once a second while requests are out.
        """
        now = self._loop.time()
        for index, channel in enumerate(self._channels):
            if channel.is_dead(now):
                self._replace(index, now)
        self._close_unused()
        self._check = self._loop.call_later(_CHECK_INTERVAL, self._replace_dead) if any(self.out) else None

    def _replace(self, index: int, now: float) -> None:
        fresh = self._make()
        self._replaced.append(self._channels[index])
        self._channels[index] = fresh
        fresh.look(now, connect=True)
        self.counts.replaced += 1

    def _close_unused(self) -> None:
        for channel in [channel for channel in self._replaced if not channel.out]:
            self._replaced.remove(channel)
            closing = self._loop.create_task(channel.channel.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _make(self) -> _Channel:
        return _Channel(next(self._numbers), self._make_channel())

    async def close(self) -> None:
        """Closes all connections; requests that are still out end as cancelled, and new ones fail."""
        if self._closed:
            return
        self._closed = True
        if self._check is not None:
            self._check.cancel()
        channels = [*self._channels, *self._replaced]
        # gRPC's own thread ends with the last channel, even if somebody keeps a closed publisher.
        self._channels.clear()
        self._replaced.clear()
        for channel in channels:
            await channel.channel.close()
        for closing in tuple(self._closing):
            await closing

    def __repr__(self) -> str:
        return f"<Channels {self._channels}>"


async def _give(answer: Answer) -> Answer:
    return answer


async def _answer(call: _Call) -> Answer:
    try:
        return tuple(_parse_response(await call).message_ids)
    except grpc.aio.AioRpcError as error:
        return Refusal(error.code(), error.details() or "")
    except Exception as error:  # noqa: BLE001 - nor an answer that nobody can read
        return _unexpected(error)


def _unexpected(error: Exception) -> Refusal:
    return Refusal(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}", final=True)
