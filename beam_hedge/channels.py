"""The connections of a publisher, and which of them the next attempt takes."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING

import grpc
from google.api_core.gapic_v1 import routing_header
from google.pubsub_v1.types import PublishResponse

from beam_hedge.channel_factory import CLIENT_INFO
from beam_hedge.interfaces import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from beam_hedge.batch import Batch
    from beam_hedge.interfaces import Answer, Metadata

    Stub = grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]

_PUBLISH = "/google.pubsub.v1.Publisher/Publish"
_parse_response = PublishResponse.pb().FromString
_CLIENT_HEADER = CLIENT_INFO.to_grpc_metadata()


def choose_connection(out: Sequence[int], avoid: Collection[int]) -> int:
    """Picks the connection for an attempt.

    Args:
        out: How many requests each connection has out.
        avoid: Connections that it should not share, such as those of its batch's live attempts.

    Returns:
        The index of the connection with the fewest requests out, not one of `avoid` if there is another.

    Example:
        >>> choose_connection([3, 1, 2], avoid={1})
        2
    """
    candidates = [index for index in range(len(out)) if index not in avoid] or range(len(out))
    return min(candidates, key=out.__getitem__)


class Channels:
    """A few channels, each with a TCP connection of its own.

    Lives on the engine's loop: made, used and closed there. A connection opens with its channel's first
    request.
    """

    def __init__(self, make_channel: Callable[[], grpc.aio.Channel], connections: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._channels = [make_channel() for _ in range(connections)]
        # The payload is bytes already. The generated client's own stub would encode it once more for each
        # attempt.
        self._stubs: list[Stub] = [channel.unary_unary(_PUBLISH) for channel in self._channels]
        self._out = [0] * connections

    @property
    def out(self) -> tuple[int, ...]:
        """How many requests each connection has out."""
        return tuple(self._out)

    def send(
        self, batch: Batch, metadata: Metadata, timeout: float, avoid: Collection[int]
    ) -> tuple[int, asyncio.Task[Answer]]:
        """Starts a publish request; see `beam_hedge.interfaces.Connections`."""
        index = choose_connection(self._out, avoid)
        routing = routing_header.to_grpc_metadata((("topic", batch.topic),))
        task = self._loop.create_task(
            self._call(index, batch.request, timeout, (routing, _CLIENT_HEADER, *metadata))
        )
        self._out[index] += 1
        # Not in the coroutine: one that is cancelled before its first step runs none of its code.
        task.add_done_callback(functools.partial(self._ended, index))
        return index, task

    async def _call(self, index: int, request: bytes, timeout: float, metadata: Metadata) -> Answer:
        try:
            response = await self._stubs[index](request, timeout=timeout, metadata=metadata)
            return tuple(_parse_response(response).message_ids)
        except grpc.aio.AioRpcError as error:
            return Refusal(error.code(), error.details() or "")
        except Exception as error:  # noqa: BLE001 - whatever else goes wrong must end the batch, never leave it waiting
            return Refusal(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}", final=True)

    def _ended(self, index: int, _task: asyncio.Task[Answer]) -> None:
        self._out[index] -= 1

    async def close(self) -> None:
        """Closes all connections; requests that are still out end as cancelled."""
        self._stubs.clear()
        while self._channels:
            await self._channels.pop().close()

    def __repr__(self) -> str:
        return f"<Channels {len(self._out)} connections, requests out: {', '.join(map(str, self._out))}>"
