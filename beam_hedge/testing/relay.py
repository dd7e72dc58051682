"""A TCP relay in front of the server, through which single connections can be disturbed."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

from beam_hedge.testing.connection import Connection

if TYPE_CHECKING:
    from beam_hedge.testing.connection import ConnectionState


class Relay:
    """Copies bytes between clients and the server, each connection of a client over one of its own.

    Owned by the server. One daemon thread accepts, and two more for each connection copy; all of them end at
    `stop()`, those of a connection also when either end closes it. The lock guards the table of connections.

    Args:
        host: The address to listen on.
        port: The port to listen on; 0 for a free one.
        target: Address and port of the server behind it.

    Raises:
        OSError: If it cannot listen there.
    """

    def __init__(self, host: str, port: int, target: tuple[str, int]) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=128)
        self._target = target
        self._lock = threading.Lock()
        self._connections: dict[int, Connection] = {}
        # The clients by the address that the server sees. Ended ones stay: their calls may be looked at later.
        self._clients: dict[str, str] = {}
        self._closed = False
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="local-pubsub-relay", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops listening, cuts all connections and waits for the threads; harmless when repeated."""
        self._closed = True
        # A thread that waits in accept() does not notice that its socket is closed: a connection wakes it.
        with contextlib.suppress(OSError):
            socket.create_connection(self._listener.getsockname()[:2]).close()
        self._thread.join()
        self._listener.close()
        with self._lock:
            connections = list(self._connections.values())
        for connection in connections:
            connection.cut()
            connection.join()

    def client_of(self, address: str) -> str:
        """Returns the client's address and port for a peer as the server sees it."""
        return self._clients.get(address, address)

    def connections(self) -> list[ConnectionState]:
        """Returns the open connections, ordered by client port."""
        with self._lock:
            return [connection.state() for _, connection in sorted(self._connections.items())]

    def connection(self, client_port: int) -> Connection:
        """Returns an open connection.

        Raises:
            LookupError: If there is none from that port.
        """
        with self._lock:
            if client_port not in self._connections:
                raise LookupError(
                    f"no open connection from port {client_port}: there are {sorted(self._connections)}"
                )
            return self._connections[client_port]

    def cut(self, client_port: int) -> None:
        """Cuts a connection, if it is still open."""
        with self._lock:
            connection = self._connections.get(client_port)
        if connection is not None:
            connection.cut()

    def _accept(self) -> None:
        while True:
            client, address = self._listener.accept()
            if self._closed:
                client.close()
                return
            self._connect(client, address)

    def _connect(self, client: socket.socket, address: tuple[str, int]) -> None:
        try:
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        connection = Connection(client, server, address[1], self._forget)
        with self._lock:
            self._clients[_join(server.getsockname())] = _join(address)
            self._connections[address[1]] = connection
        connection.start()

    def _forget(self, connection: Connection) -> None:
        with self._lock:
            if self._connections.get(connection.client_port) is connection:
                del self._connections[connection.client_port]


def _join(address: tuple[str, int]) -> str:
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
