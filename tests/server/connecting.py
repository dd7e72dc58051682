"""Waiting for a publisher's connections to be what a test needs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.server.serving import PATIENCE, eventually

if TYPE_CHECKING:
    from beam_hedge import HedgingPublisher


def states(publisher: HedgingPublisher) -> dict[int, str]:
    """Returns what the publisher's `repr` says of each connection: "ready", "suspect" or "not open"."""
    found = re.findall(r"<connection (\d+): ([a-z ]+), \d+ out>", repr(publisher))
    return {int(number): state for number, state in found}


def out(publisher: HedgingPublisher) -> list[int]:
    """Returns how many requests the publisher's `repr` says each connection has out."""
    return [int(count) for count in re.findall(r"<connection \d+: [a-z ]+, (\d+) out>", repr(publisher))]


def open_all(publisher: HedgingPublisher, connections: int = 2) -> None:
    """Publishes until all connections are open, each batch with the one message `b"opens"`."""

    def all_ready() -> bool:
        publisher.publish([b"opens"]).result(PATIENCE)
        return list(states(publisher).values()) == ["ready"] * connections

    eventually(all_ready)
