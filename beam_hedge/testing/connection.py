"""One connection through the relay, and what can be done to it."""

from __future__ import annotations

import contextlib
import math
import socket
import threading
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


_CHUNK = 1 << 16


@dataclass(frozen=True)
class ConnectionState:
    """What the relay knows of one connection.

    Attributes:
        client_port: The port of the client's end, which names the connection.
        sent: Bytes that went from the client to the server.
        received: Bytes that went back.
        frozen: Whether it stands still at the moment.
        delay: Seconds that each chunk is held back.
        black_hole: Whether everything it carries vanishes.
    """

    client_port: int
    sent: int
    received: int
    frozen: bool
    delay: float
    black_hole: bool


class Connection:
    """Copies bytes both ways, on two daemon threads that end when either end closes or the connection is cut.

    The condition guards the state; the threads wait on it while the connection is frozen or slow, never with
    it held.

    Args:
        client: The socket to the client.
        server: The socket to the server.
        client_port: The port of the client's end.
        on_end: Called once, after both directions have ended.
    """

    def __init__(
        self,
        client: socket.socket,
        server: socket.socket,
        client_port: int,
        on_end: Callable[[Connection], None],
    ) -> None:
        self.client_port = client_port
        self._client = client
        self._server = server
        self._on_end = on_end
        self._changed = threading.Condition()
        self._open_directions = 2
        self._cut = False
        self._frozen_until = -math.inf
        self._delay = 0.0
        self._black_hole = False
        self._carried = {client: 0, server: 0}
        self._threads = [
            threading.Thread(target=self._copy, args=ends, name="local-pubsub-copy", daemon=True)
            for ends in ((client, server), (server, client))
        ]
        for end in (client, server):
            # Small frames must not wait until earlier ones are acknowledged: the relay adds no delay.
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        """Starts to copy."""
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Waits until both threads have ended, as they do after `cut()`."""
        for thread in self._threads:
            thread.join()

    def freeze(self, seconds: float | None) -> None:
        """Holds back everything for a time, or until `thaw()` if it is None; nothing is lost."""
        with self._changed:
            self._frozen_until = math.inf if seconds is None else monotonic() + seconds
            self._changed.notify_all()

    def thaw(self) -> None:
        """Ends a freeze."""
        self.freeze(0)

    def slow(self, delay: float) -> None:
        """Holds back each chunk of at most 64 KiB for `delay` seconds, in each direction; 0 ends it."""
        with self._changed:
            self._delay = delay

    def black_hole(self) -> None:
        """Has everything vanish from now on, while the connection stays open."""
        with self._changed:
            self._black_hole = True

    def cut(self) -> None:
        """Closes both ends at once."""
        with self._changed:
            self._cut = True
            self._changed.notify_all()
        for end in (self._client, self._server):
            # shutdown() wakes a thread that is inside recv() or sendall(), as close() would not.
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def state(self) -> ConnectionState:
        """Returns the state at the moment."""
        with self._changed:
            return ConnectionState(
                client_port=self.client_port,
                sent=self._carried[self._client],
                received=self._carried[self._server],
                frozen=monotonic() < self._frozen_until,
                delay=self._delay,
                black_hole=self._black_hole,
            )

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (chunk := source.recv(_CHUNK)) and self._may_pass():
                if not self._black_hole:
                    sink.sendall(chunk)
                    self._carried[source] += len(chunk)
        self.cut()
        with self._changed:
            self._open_directions -= 1
            last = self._open_directions == 0
        if last:
            self._client.close()
            self._server.close()
            self._on_end(self)

    def _may_pass(self) -> bool:
        with self._changed:
            passes_at = monotonic() + self._delay
            while not self._cut:
                pause = max(passes_at, self._frozen_until) - monotonic()
                if pause <= 0:
                    return True
                self._changed.wait(None if math.isinf(pause) else pause)
            return False
