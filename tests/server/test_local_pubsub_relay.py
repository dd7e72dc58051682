"""LocalPubSub behind its relay: single connections frozen, slowed, emptied and cut."""

from __future__ import annotations

import socket
import threading
from time import monotonic
from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge.testing import CUT, LocalPubSub
from tests.server.conftest import TOPIC, ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.server.conftest import RawClient

    Serve = Callable[..., tuple[LocalPubSub, RawClient]]
    Connect = Callable[[LocalPubSub], RawClient]


def port_of(server: LocalPubSub, client: RawClient) -> int:
    """Returns the port of a client's connection, after a publish over it."""
    ids(client.publish(b"hello"))
    return server.requests[-1].peer_port


def test_peers_are_the_clients_own_ends(serve: Serve, connect: Connect) -> None:
    """Users see distinct connections as distinct peers, with a relay in between."""
    server, first = serve(relay=True)
    ports = [port_of(server, first), port_of(server, connect(server))]
    assert [state.client_port for state in server.connections()] == sorted(ports)
    host, _, port = server.endpoint.partition(":")
    with socket.create_connection((host, int(port))) as raw:
        # The server speaks first, so that something has come through the relay when this returns.
        assert raw.recv(1)
        listed = {state.client_port for state in server.connections()}
        assert listed == {*ports, raw.getsockname()[1]}


def test_large_requests_pass_unchanged(serve: Serve) -> None:
    """Users get the same messages with the relay as without."""
    server, client = serve(relay=True)
    data = bytes(range(256)) * 36_000
    ids(client.publish(data))
    assert server.messages(TOPIC)[0].data == data
    (state,) = server.connections()
    assert state.sent > len(data)
    assert state.received > 0


def test_a_frozen_connection_stands_still_and_loses_nothing(serve: Serve, connect: Connect) -> None:
    """Users can stall one connection while the others go on."""
    server, client = serve(relay=True)
    frozen = port_of(server, client)
    server.freeze(frozen)
    held = client.publish(b"held")
    ids(connect(server).publish(b"other"))
    assert [message.data for message in server.messages(TOPIC)] == [b"hello", b"other"]
    assert not held.done()
    assert [state.client_port for state in server.connections() if state.frozen] == [frozen]
    server.thaw(frozen)
    ids(held)
    assert server.messages(TOPIC)[-1].data == b"held"
    assert not any(state.frozen for state in server.connections())


def test_a_freeze_can_end_by_itself(serve: Serve) -> None:
    """Users can stall a connection for a given time."""
    server, client = serve(relay=True)
    port = port_of(server, client)
    before = monotonic()
    server.freeze(port, 0.05)
    ids(client.publish(b"x"))
    assert monotonic() - before >= 0.05


def test_a_slow_connection_delays_each_way(serve: Serve) -> None:
    """Users can make one connection slower than the others, and quick again."""
    server, client = serve(relay=True)
    port = port_of(server, client)
    server.slow(port, 0.03)
    before = monotonic()
    ids(client.publish(b"x"))
    assert monotonic() - before >= 0.06
    assert server.connections()[0].delay == 0.03
    server.slow(port, 0)
    ids(client.publish(b"y"))
    assert server.connections()[0].delay == 0


def test_a_black_hole_swallows_and_stays_open(serve: Serve, connect: Connect) -> None:
    """Users can test a connection that is dead without anybody telling."""
    server, client = serve(relay=True)
    port = port_of(server, client)
    server.black_hole(port)
    assert client.publish(b"lost", timeout=0.1).code() == grpc.StatusCode.DEADLINE_EXCEEDED
    ids(connect(server).publish(b"other"))
    assert [message.data for message in server.messages(TOPIC)] == [b"hello", b"other"]
    assert [state.client_port for state in server.connections() if state.black_hole] == [port]


def test_a_cut_connection_fails_its_calls_and_the_client_comes_back(serve: Serve) -> None:
    """Users can test a reset connection."""
    server, client = serve(relay=True)
    port = port_of(server, client)
    server.freeze(port)
    call = client.publish(b"lost")
    server.cut(port)
    assert call.code() == grpc.StatusCode.UNAVAILABLE
    ids(client.publish(b"after", wait_for_ready=True))
    assert server.requests[-1].peer_port != port
    assert [message.data for message in server.messages(TOPIC)] == [b"hello", b"after"]


@pytest.mark.parametrize("store", ["arrival", "answer"])
def test_a_script_can_cut_the_connection_of_a_call(serve: Serve, connect: Connect, store: str) -> None:
    """Users can lose the answer to a request that the server has stored, or has not."""
    server, client = serve(relay=True, script={3: CUT}, store=store)
    other = connect(server)
    port = port_of(server, client)
    kept = port_of(server, other)
    assert client.publish(b"x").code() == grpc.StatusCode.UNAVAILABLE
    server.wait_for(lambda ledger: ledger.cancelled == 1)
    record = server.requests[2]
    assert record.cancelled
    assert record.peer_port == port
    assert port_of(server, other) == kept
    expected = [b"hello"] * 2 + [b"x"] * (store == "arrival") + [b"hello"]
    assert [message.data for message in server.messages(TOPIC)] == expected


def test_stopping_leaves_no_connection_and_no_thread(serve: Serve) -> None:
    """Users can stop a server whose connections are frozen, and start it again."""
    before = set(threading.enumerate())
    server, client = serve(relay=True)
    server.freeze(port_of(server, client))
    held = client.publish(b"held")
    server.stop()
    assert held.code() == grpc.StatusCode.UNAVAILABLE
    assert server.connections() == []
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("local-pubsub"):
            thread.join(20)
            assert not thread.is_alive()
    server.start()
    ids(client.publish(b"after", wait_for_ready=True))


def test_without_a_relay_connections_cannot_be_touched(serve: Serve) -> None:
    """Users are told how to get a relay when they need one."""
    server, _ = serve()
    with pytest.raises(RuntimeError, match="relay=True"):
        server.connections()
    with pytest.raises(RuntimeError, match="relay=True"):
        server.freeze(1)


def test_an_unknown_connection_is_an_error(serve: Serve) -> None:
    """Users who mistake a port are told which ones there are."""
    server, client = serve(relay=True)
    port = port_of(server, client)
    with pytest.raises(LookupError, match=rf"no open connection from port 1: there are \[{port}\]"):
        server.cut(1)


def test_a_taken_port_is_an_error_with_a_relay_too(serve: Serve) -> None:
    """Users are told that a port is taken, whichever part of the server wants it."""
    server, _ = serve()
    with pytest.raises(OSError, match="in use"):
        LocalPubSub(int(server.endpoint.rpartition(":")[2]), relay=True).start()
