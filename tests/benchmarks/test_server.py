"""The benchmarks' publish server, in its own process, with real clients."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from beam_hedge import HedgingPublisher, HedgingSettings
from benchmarks.disturbances import Disturbance, Swallow
from benchmarks.server import draw, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.server import Server

EAGER = HedgingSettings(hedge_delay=0.1, initial_tokens=50)


@pytest.fixture(autouse=True)
def no_emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Looks after the variable that servers set."""
    monkeypatch.delenv("PUBSUB_EMULATOR_HOST", raising=False)
    yield
    assert "PUBSUB_EMULATOR_HOST" not in os.environ


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that answers at once."""
    with serving() as server:
        yield server


def test_it_counts_what_it_gets(server: Server) -> None:
    """A benchmark's figures about requests and messages are the server's own."""
    with HedgingPublisher(server.topic, None) as publisher:
        sizes = [1, 100, 1000]
        outcomes = [publisher.publish([b"x" * 1024] * size).result() for size in sizes]
    assert [len(set(outcome.message_ids)) for outcome in outcomes] == sizes
    seen = server.seen()
    assert (seen.requests, seen.messages, seen.given_up) == (3, 1101, 0)
    assert sum(seen.by_connection.values()) == 3
    assert seen.cpu > 0


def test_a_request_of_many_frames_is_one_request(server: Server) -> None:
    """The largest request that Pub/Sub takes can be measured as well."""
    with HedgingPublisher(server.topic, None) as publisher:
        assert publisher.publish([b"x" * 9_000_000]).result().attempts == 1
    assert server.seen().requests == 1


def test_a_connection_can_be_taken_away(server: Server) -> None:
    """A disturbance hits one connection, and a publisher with another one does not lose a message."""
    with HedgingPublisher(server.topic, EAGER) as publisher:
        publisher.publish([b"opens a connection"]).result()
        (first,) = server.disturb((Disturbance(Swallow()),)).by_connection
        outcomes = [publisher.publish([b"x"]).result() for _ in range(4)]
        assert any(outcome.winner > 0 for outcome in outcomes)
        assert server.seen().by_connection[first] == 1


def test_what_it_drew_can_be_told() -> None:
    """The limit is computed from the latencies that the server really used, those of one seed."""
    profile = "0.5:0,0.5:0.05"
    with serving(profile, seed=3) as server, HedgingPublisher(server.topic, None) as publisher:
        latencies = [publisher.publish([b"x"]).result().latency for _ in range(8)]
        drawn = server.drawn(0, server.seen().requests)
    assert drawn == list(draw(profile, 3)[:8])
    assert len(set(drawn)) == 2
    assert all(latency >= least for latency, least in zip(latencies, drawn, strict=True))
