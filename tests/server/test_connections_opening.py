"""How many TCP connections a publisher holds: one while nobody uses it, then as many as it was told."""

from __future__ import annotations

import pytest

from beam_hedge import HedgingPublisher
from beam_hedge.testing import NEVER
from tests.server.connecting import open_all, states
from tests.server.serving import EAGER, PATIENCE, TOPIC, by_attempt, eventually, serving


def test_an_idle_publisher_holds_one_connection() -> None:
    """A worker whose sink has nothing to do costs the service one connection, open before the first request."""
    with serving(relay=True) as server, HedgingPublisher(TOPIC, connections=8) as idle:
        eventually(lambda: len(server.connections()) == 1)
        (only,) = server.connections()
        with HedgingPublisher(TOPIC, connections=1) as busy:
            # All publishers share an engine: what the idle one had to do would be done before these.
            for _ in range(20):
                busy.publish([b"x"]).result(PATIENCE)
            assert len(server.connections()) == 2
        assert list(states(idle).values()) == ["not open"] * 8
        idle.publish([b"first"]).result(PATIENCE)
        assert server.requests[-1].peer_port == only.client_port


@pytest.mark.parametrize("connections", [1, 2, 8])
def test_traffic_opens_as_many_connections_as_told(connections: int) -> None:
    """After the first batches every connection is open, each a TCP connection of its own, and no more come."""
    with serving(relay=True) as server, HedgingPublisher(TOPIC, None, connections=connections) as publisher:
        open_all(publisher, connections)
        for _ in range(3 * connections):
            publisher.publish([b"x"]).result(PATIENCE)
        used = {record.peer_port for record in server.requests[-3 * connections :]}
        assert used == {state.client_port for state in server.connections()}
        assert len(used) == connections


def test_the_first_hedge_of_all_has_a_connection_of_its_own() -> None:
    """A publisher whose very first request stalls is helped by the second connection as well."""
    with serving(by_attempt(NEVER, None)) as server, HedgingPublisher(TOPIC, EAGER) as publisher:
        assert publisher.publish([b"x"]).result(PATIENCE).hedges >= 1
        assert len({record.peer_port for record in server.requests[:2]}) == 2


def test_closing_closes_them_all() -> None:
    """A publisher that is closed holds no connection to the service."""
    with serving(relay=True) as server:
        with HedgingPublisher(TOPIC, connections=4) as publisher:
            open_all(publisher, 4)
            assert len(server.connections()) == 4
        eventually(lambda: server.connections() == [])
