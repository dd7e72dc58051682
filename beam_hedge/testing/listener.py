"""The gRPC server, its handler threads and its relay: what starts and stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import grpc

from beam_hedge.testing.relay import Relay
from beam_hedge.testing.workers import HandlerThreads

if TYPE_CHECKING:
    from collections.abc import Sequence


MAX_PORT = 65_535
_STOP_SECONDS = 10.0
_FAREWELL_SECONDS = 0.5


class Listener:
    """Listens for one `LocalPubSub`, which owns it; after a stop it can start again on the same port.

    Args:
        host: The address to listen on.
        port: The port to listen on; 0 for a free one.
        with_relay: Whether a relay listens there, with the gRPC server behind it.
        max_receive_bytes: GRPC's limit for a request; -1 for none.
        handlers: The most calls that are served at once.
    """

    def __init__(
        self, host: str, port: int, *, with_relay: bool, max_receive_bytes: int, handlers: int
    ) -> None:
        self.host = host
        self.port = port
        self.relay: Relay | None = None
        self._with_relay = with_relay
        self._max_receive_bytes = max_receive_bytes
        self._handlers = handlers
        self._running: tuple[grpc.Server, HandlerThreads] | None = None

    @property
    def address(self) -> str:
        """Address and port, as clients write it."""
        return _address(self.host, self.port)

    @property
    def running(self) -> bool:
        """Whether it listens."""
        return self._running is not None

    @property
    def threads(self) -> int:
        """The number of handler threads that are alive."""
        return 0 if self._running is None else self._running[1].alive

    def start(self, services: Sequence[grpc.GenericRpcHandler]) -> None:
        """Starts to listen.

        Raises:
            OSError: If it cannot listen on its port.
            RuntimeError: If it runs already.
        """
        if self._running is not None:
            raise RuntimeError(f"the server on {self.address} runs already")
        threads = HandlerThreads(self._handlers)
        server = grpc.server(
            # Of a pool gRPC wants submit() and no more.
            cast("Any", threads),
            options=[
                # Without it a second server could take the same port and half of the calls.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", self._max_receive_bytes),
                ("grpc.max_send_message_length", -1),
                # Clients that keep their connections alive with frequent pings are welcome.
                ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
                ("grpc.http2.max_ping_strikes", 0),
            ],
        )
        server.add_generic_rpc_handlers(tuple(services))
        if self._with_relay:
            behind = server.add_insecure_port("127.0.0.1:0")
            self.relay = Relay(self.host, self.port, ("127.0.0.1", behind))
            self.port = self.relay.port
        else:
            try:
                self.port = server.add_insecure_port(self.address)
            except RuntimeError as error:
                raise OSError(f"cannot listen on {self.address}: is the port in use?") from error
        server.start()
        self._running = server, threads

    def stop(self) -> None:
        """Stops: all calls end at once; harmless when repeated.

        Raises:
            RuntimeError: If a handler does not end.
        """
        if self._running is None:
            return
        server, threads = self._running
        self._running = None
        if self.relay is not None:
            self.relay.stop()
        # With nothing to cancel, gRPC takes leave of idle clients properly: else each of them logs an error.
        server.stop(None if threads.busy else _FAREWELL_SECONDS).wait(_STOP_SECONDS)
        if not threads.close(_STOP_SECONDS):
            raise RuntimeError(
                f"{threads.alive} handlers still run {_STOP_SECONDS:g} s after the stop: does the script block?"
            )


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
