"""What a server with a relay lets tests do to single connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beam_hedge.testing.connection import ConnectionState
    from beam_hedge.testing.listener import Listener
    from beam_hedge.testing.relay import Relay


class RelayControls:
    """The methods of `LocalPubSub` that need `relay=True`; without it they raise `RuntimeError`.

    A connection is named by the port of its client's end, which `RequestRecord.peer_port` tells as well.
    Naming one that is not open raises `LookupError`.
    """

    _listener: Listener

    def connections(self) -> list[ConnectionState]:
        """Returns the open connections, ordered by client port."""
        return self._running_relay().connections()

    def freeze(self, client_port: int, seconds: float | None = None) -> None:
        """Holds back all that a connection carries, both ways, for a time; nothing is lost.

        Args:
            client_port: The connection.
            seconds: How long; default: until `thaw()`.
        """
        self._running_relay().connection(client_port).freeze(seconds)

    def thaw(self, client_port: int) -> None:
        """Ends the freeze of a connection."""
        self._running_relay().connection(client_port).freeze(0)

    def slow(self, client_port: int, delay: float) -> None:
        """Holds back each chunk of at most 64 KiB on a connection for `delay` seconds, both ways; 0 ends it."""
        self._running_relay().connection(client_port).slow(delay)

    def black_hole(self, client_port: int) -> None:
        """Has all that a connection carries vanish from now on, while it stays open."""
        self._running_relay().connection(client_port).black_hole()

    def cut(self, client_port: int) -> None:
        """Closes a connection at both ends."""
        self._running_relay().connection(client_port).cut()

    def _running_relay(self) -> Relay:
        relay = self._relay()
        if relay is None:
            raise RuntimeError("there is no relay: use a LocalPubSub(relay=True) that runs")
        return relay

    def _relay(self) -> Relay | None:
        return self._listener.relay
