"""Connections are cut, or closed by the other side; the service itself is well."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from beam_hedge import HedgingPublisher
from beam_hedge.testing import CUT, Reply
from tests.faults.publishing import RETRY, Caller, FirstTry, stored
from tests.server import aging_server
from tests.server.connecting import open_all
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, eventually, held, serving

if TYPE_CHECKING:
    from beam_hedge import HedgingSettings
    from tests.faults.row import Matrix

SECTION = "Connections"
MESSAGES = 20
# More than what sockets and windows take without the other side, so that it is on its way for a while.
LARGE = b"x" * 8_000_000


def test_a_connection_is_cut_while_a_request_is_sent(matrix: Matrix) -> None:
    """A request that the service has half of goes out again as a whole, on another connection."""
    with (
        serving(relay=True) as server,
        HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher,
    ):
        open_all(publisher)
        known = server.ledger().requests
        before = {each.client_port: each.sent for each in server.connections()}
        for port in before:
            server.slow(port, 0.05)
        caller = Caller(publisher)
        caller.publish(LARGE)

        def under_way() -> list[int]:
            return [
                each.client_port
                for each in server.connections()
                if each.sent - before[each.client_port] > len(LARGE) // 10
            ]

        eventually(under_way)
        [port] = under_way()
        server.cut(port)
        cut_at = time.monotonic()
        assert server.ledger().requests == known
        for each in server.connections():
            server.slow(each.client_port, 0)
        caller.publish_each(MESSAGES)
        recovery = caller.recover(cut_at)
    row = caller.row(
        matrix,
        "a connection is cut while a request is sent",
        section=SECTION,
        stored=stored(server),
        recovery=recovery,
    )
    assert (row.acknowledged, row.duplicated) == (1 + MESSAGES, 0)
    assert caller.outcomes[0].retries == 1


@pytest.mark.parametrize("settings", [UNHURRIED, None], ids=["hedged", "plain"])
def test_a_connection_is_cut_before_the_answer(settings: HedgingSettings | None, matrix: Matrix) -> None:
    """What the service had stored when its answer was lost is stored again by the retry, and not failed."""
    with (
        serving(relay=True) as server,
        HedgingPublisher(TOPIC, settings, retry_settings=RETRY) as publisher,
    ):
        open_all(publisher)
        server.script = FirstTry(CUT)
        caller = Caller(publisher)
        caller.publish_each(MESSAGES)
        caller.wait()
        recovery = caller.recover(time.monotonic())
    hedging = "hedged" if settings else "not hedged"
    row = caller.row(
        matrix,
        f"each request has its connection cut before the answer, {hedging}",
        section=SECTION,
        stored=stored(server),
        recovery=recovery,
    )
    assert row.acknowledged == MESSAGES
    assert row.duplicated > 0


def test_all_connections_are_cut_at_once(matrix: Matrix) -> None:
    """A network that drops all there is costs a retry for what was out, and new connections."""
    with (
        serving(relay=True) as server,
        HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher,
    ):
        open_all(publisher)
        caller = Caller(publisher)
        server.script = FirstTry(Reply(delay=60))
        caller.publish_each(MESSAGES)
        server.wait_for(lambda ledger: ledger.open == MESSAGES, timeout=PATIENCE)
        for each in server.connections():
            server.cut(each.client_port)
        server.script = None
        recovery = caller.recover(time.monotonic())
    row = caller.row(
        matrix,
        "all connections are cut with requests out",
        section=SECTION,
        stored=stored(server),
        recovery=recovery,
    )
    assert (row.acknowledged, row.duplicated) == (MESSAGES, MESSAGES)


def test_connections_are_cut_with_answers_on_their_way(matrix: Matrix) -> None:
    """An answer that the service has given, and nobody has got, is no answer: the messages are sent again."""
    with (
        serving(relay=True) as server,
        HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher,
    ):
        open_all(publisher)
        answered = server.ledger().answered
        caller = Caller(publisher)
        with held(server):
            caller.publish_each(MESSAGES)
            server.wait_for(lambda ledger: ledger.open == MESSAGES, timeout=PATIENCE)
            ports = [each.client_port for each in server.connections()]
            for port in ports:
                server.freeze(port)
        server.wait_for(lambda ledger: ledger.answered == answered + MESSAGES, timeout=PATIENCE)
        for port in ports:
            server.cut(port)
        recovery = caller.recover(time.monotonic())
    row = caller.row(
        matrix,
        "all connections are cut with answers on their way",
        section=SECTION,
        stored=stored(server),
        recovery=recovery,
    )
    assert (row.acknowledged, row.duplicated) == (MESSAGES, MESSAGES)


class _StoringServer(aging_server.Aging):
    def __init__(self) -> None:
        super().__init__()
        self.stored: list[bytes] = []

    def publish(self, request: Any, context: Any) -> Any:
        self.stored.extend(message.data for message in request.messages)
        return super().publish(request, context)


def test_the_server_says_goaway(matrix: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    """Front ends close connections as they age, with GOAWAY; a bundle does not notice."""
    monkeypatch.setattr(aging_server, "Aging", _StoringServer)
    with aging_server.aging(age_ms=200) as server, pytest.MonkeyPatch.context() as environment:
        assert isinstance(server, _StoringServer)
        environment.setenv("PUBSUB_EMULATOR_HOST", server.endpoint)
        with HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher:
            caller = Caller(publisher)
            # Spread over the lives of several connections.
            for part in range(5):
                used = len(set(server.peers))
                caller.publish_each(MESSAGES, f"part {part}, message")
                while len(set(server.peers)) == used:
                    caller.wait()
                    publisher.publish([b"more"]).result(PATIENCE)
    row = caller.row(
        matrix,
        "GOAWAY: the server closes each connection after 0.2 s",
        section=SECTION,
        stored=server.stored,
    )
    assert row.acknowledged == row.messages
