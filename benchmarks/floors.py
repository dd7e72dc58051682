"""What publishing costs at least: gRPC on one asyncio loop, as in the library, and nothing around it.

Each function is the only user of `grpc.aio` in its process.
"""

from __future__ import annotations

import asyncio
import functools
import os
import time
from typing import TYPE_CHECKING, Any

import grpc
from google.pubsub_v1.types import PublishRequest, PublishResponse

from benchmarks.server import TOPIC
from benchmarks.usage import Published, measured

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.shapes import Shape

_Request: Any = PublishRequest.pb()
_parse_response: Any = PublishResponse.pb().FromString
# As many messages as the library's flow control lets out by default, in batches of 100.
_REQUESTS_OUT = 100


def publish_protobufs(shape: Shape, seconds: float) -> Published:
    """Builds a protobuf for each message, and encodes each request once.

    Args:
        shape: What to publish.
        seconds: For how long.
    """
    data, attributes = shape.data, shape.all_attributes

    def build() -> bytes:
        request = _Request(topic=TOPIC)
        add = request.messages.add
        for _ in range(shape.batch):
            if attributes:
                add(data=data, attributes=attributes)
            else:
                add(data=data)
        encoded: bytes = request.SerializeToString()
        return encoded

    return _loop().run_until_complete(_publish(build, seconds))


def publish_bytes(shape: Shape, seconds: float) -> Published:
    """Sends the same bytes, made beforehand, again and again: what is left is gRPC and the server.

    Args:
        shape: What to publish.
        seconds: For how long.
    """
    message = {"data": shape.data, "attributes": shape.all_attributes}
    request: bytes = _Request(topic=TOPIC, messages=[message] * shape.batch).SerializeToString()
    return _loop().run_until_complete(_publish(lambda: request, seconds))


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    """The process's one loop, which ends with the process: gRPC does not take well to a second one."""
    return asyncio.new_event_loop()


async def _publish(build: Callable[[], bytes], seconds: float) -> Published:
    sent = 0
    async with grpc.aio.insecure_channel(os.environ["PUBSUB_EMULATOR_HOST"]) as channel:
        publish: Any = channel.unary_unary("/google.pubsub.v1.Publisher/Publish")
        await publish(build())

        async def repeat(end: float) -> None:
            nonlocal sent
            while time.perf_counter() < end:
                response = _parse_response(await publish(build()))
                sent += len(response.message_ids)

        with measured() as usage:
            end = time.perf_counter() + seconds
            await asyncio.gather(*(repeat(end) for _ in range(_REQUESTS_OUT)))
    return Published(sent, usage.cpu, usage.wall)
