"""A Pub/Sub that speaks TLS, as the real one does, and notes what each publish call brought."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
from google.pubsub_v1 import types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.security.certificates import Certificate

_Response: Any = types.PublishResponse.pb()
_Request: Any = types.PublishRequest.pb()
_SECONDS = 20


class SecureServer:
    """What the server has seen.

    Attributes:
        endpoint: Where it listens.
        calls: The metadata and the messages' data of each call.
        stalled: How many of the next calls get no answer until another one has arrived.
    """

    def __init__(self) -> None:
        self.endpoint = ""
        self.calls: list[tuple[dict[str, str], list[bytes]]] = []
        self.stalled = 0
        self._another = threading.Event()

    def publish(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Answers a publish call."""
        metadata = {str(key): str(value) for key, value in context.invocation_metadata()}
        self.calls.append((metadata, [message.data for message in request.messages]))
        if self.stalled:
            self.stalled -= 1
            self._another.wait(_SECONDS)
        else:
            self._another.set()
        return _Response(message_ids=[str(number) for number in range(len(request.messages))])


@contextmanager
def secure_server(certificate: Certificate, *, clients: bytes | None = None) -> Iterator[SecureServer]:
    """Runs a server.

    Args:
        certificate: Who it says that it is.
        clients: The certificate that clients must show. Default: they need none.

    Yields:
        The server.
    """
    service = SecureServer()
    handler: Any = grpc.unary_unary_rpc_method_handler(
        service.publish,
        request_deserializer=_Request.FromString,
        response_serializer=lambda response: response.SerializeToString(),
    )
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("google.pubsub.v1.Publisher", {"Publish": handler}),)
    )
    credentials = grpc.ssl_server_credentials(
        [(certificate.key, certificate.chain)],
        root_certificates=clients,
        require_client_auth=clients is not None,
    )
    service.endpoint = f"localhost:{server.add_secure_port('127.0.0.1:0', credentials)}"
    server.start()
    try:
        yield service
    finally:
        server.stop(None).wait()
