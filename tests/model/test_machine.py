"""Whatever happens in whatever order, the account of a worker process adds up after each step."""

from __future__ import annotations

from tests.model.machine import Machine
from tests.model.search import search


def test_every_order_of_events_keeps_the_account() -> None:
    """Nothing is lost, sent twice without a token, or held after its batch, whatever happens in what order."""
    search(Machine, range(1))
