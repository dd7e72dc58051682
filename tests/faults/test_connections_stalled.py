"""Connections stay open and carry little or nothing; the service itself is well."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from beam_hedge import HedgingPublisher, RetrySettings, connection
from tests.faults.publishing import RETRY, Caller, budget, stored
from tests.server.connecting import open_all
from tests.server.serving import EAGER, PATIENCE, TOPIC, eventually, serving

if TYPE_CHECKING:
    from beam_hedge import HedgingSettings
    from beam_hedge.testing import LocalPubSub
    from tests.faults.row import Matrix

SECTION = "Connections"
MESSAGES = 20


def _last_used(server: LocalPubSub) -> int:
    return server.requests[-1].peer_port


@pytest.mark.parametrize("settings", [EAGER, None], ids=["hedged", "plain"])
def test_a_connection_is_half_open(
    settings: HedgingSettings | None, matrix: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that takes everything and delivers nothing is got around, given up and replaced."""
    monkeypatch.setattr(connection, "DEAD_AFTER", 1.0)
    retry = RetrySettings(initial_rpc_timeout=0.5, initial_retry_delay=0.02, max_retry_delay=0.1)
    with (
        serving(relay=True) as server,
        HedgingPublisher(TOPIC, settings, retry_settings=retry) as publisher,
    ):
        open_all(publisher)
        hole = _last_used(server)
        server.black_hole(hole)
        began = time.monotonic()
        caller = Caller(publisher)
        caller.publish_each(MESSAGES)
        caller.wait()
        # Until then some are published to keep the connections in use.
        eventually(
            lambda: (
                publisher.publish([b"more"]).result(PATIENCE).message_ids
                and publisher.connection_counts.replaced
            )
        )
        open_all(publisher)
        recovery = time.monotonic() - began
    hedging = "hedged" if settings else "not hedged"
    row = caller.row(
        matrix,
        f"one connection of two is half open: it takes all and delivers nothing, {hedging}",
        section=SECTION,
        stored=stored(server),
        recovery=recovery,
    )
    assert row.acknowledged == MESSAGES


def test_a_connection_becomes_slow(matrix: Matrix) -> None:
    """A connection that holds each byte back is got around by hedges, and used again when it is well."""
    with serving(relay=True) as server, HedgingPublisher(TOPIC, EAGER, retry_settings=RETRY) as publisher:
        open_all(publisher)
        slow = _last_used(server)
        server.slow(slow, 0.5)
        caller = Caller(publisher)
        for number in range(MESSAGES):
            caller.publish(b"message %d" % number).result(PATIENCE)
        server.slow(slow, 0)
        well_at = time.monotonic()
        open_all(publisher)
        recovery = caller.recover(well_at)
    row = caller.row(
        matrix,
        "slow first byte: one connection of two holds everything back for 0.5 s",
        section=SECTION,
        stored=stored(server),
        recovery=recovery,
    )
    assert row.acknowledged == MESSAGES
    assert row.hedges <= budget(EAGER, server)
