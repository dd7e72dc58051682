"""A server that closes each connection when it is old, as Google's front ends do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
from google.pubsub_v1 import types

if TYPE_CHECKING:
    from collections.abc import Iterator

_Response: Any = types.PublishResponse.pb()
_Request: Any = types.PublishRequest.pb()


class Aging:
    """What the server has seen.

    Attributes:
        endpoint: Where it listens.
        peers: The client's end of each call's connection, in the order of the calls.
    """

    def __init__(self) -> None:
        self.endpoint = ""
        self.peers: list[str] = []

    def publish(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Answers a publish call at once."""
        self.peers.append(context.peer())
        return _Response(message_ids=[str(number) for number in range(len(request.messages))])


@contextmanager
def aging(age_ms: int) -> Iterator[Aging]:
    """Runs a server that says GOAWAY on each connection about `age_ms` after it was opened."""
    service = Aging()
    handler: Any = grpc.unary_unary_rpc_method_handler(
        service.publish,
        request_deserializer=_Request.FromString,
        response_serializer=lambda response: response.SerializeToString(),
    )
    server = grpc.server(
        ThreadPoolExecutor(8),
        options=[("grpc.max_connection_age_ms", age_ms), ("grpc.max_connection_age_grace_ms", 5_000)],
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("google.pubsub.v1.Publisher", {"Publish": handler}),)
    )
    service.endpoint = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield service
    finally:
        server.stop(None).wait()
