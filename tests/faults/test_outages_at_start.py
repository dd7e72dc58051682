"""The service cannot be reached at first."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from beam_hedge import HedgingPublisher
from beam_hedge.testing import LocalPubSub
from tests.faults.dns_server import name_server
from tests.faults.publishing import RETRY, Caller, lasts, stored
from tests.server.serving import TOPIC, UNHURRIED, eventually

if TYPE_CHECKING:
    import pytest

    from tests.faults.row import Matrix

SECTION = "Outages and slow times"
OUTAGE = 3.0
MESSAGES = 200
THREADS = 8


def test_the_name_of_the_service_is_not_found(matrix: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server that is out of order costs retries; once it works, so does everything."""
    with LocalPubSub() as server, name_server() as names:
        server.create_topic(TOPIC)
        port = server.endpoint.rpartition(":")[2]
        monkeypatch.setenv("PUBSUB_EMULATOR_HOST", f"dns://127.0.0.1:{names.port}/pubsub.test:{port}")
        with HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher:
            caller = Caller(publisher)
            caller.publish_each(20)
            eventually(lambda: names.failed)
            lasts(1.0)
            assert not any(future.done() for future in caller.sent)
            names.works = True
            recovery = caller.recover(time.monotonic())
    row = caller.row(
        matrix,
        "DNS failure: the service's name cannot be found for 1 s",
        section=SECTION,
        stored=stored(server),
        recovery=recovery,
    )
    assert (row.acknowledged, row.duplicated) == (row.messages, 0)


def test_nobody_listens_at_first(matrix: Matrix) -> None:
    """A worker that starts before its network does not fail for that."""
    server = LocalPubSub()
    server.create_topic(TOPIC)
    # It has its port, and nobody listens there.
    server.start()
    server.stop()
    try:
        with server.environment(), HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher:
            caller = Caller(publisher)
            caller.publish_each(20)
            lasts(1.0)
            assert not any(future.done() for future in caller.sent)
            server.start()
            recovery = caller.recover(time.monotonic())
    finally:
        server.stop()
    row = caller.row(
        matrix,
        "nobody listens for the first second",
        section=SECTION,
        stored=stored(server),
        recovery=recovery,
    )
    assert (row.acknowledged, row.duplicated) == (row.messages, 0)
