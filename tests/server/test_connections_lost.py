"""Connections that die, age or are cut, and servers that go away: no batch is failed for that."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from beam_hedge import HedgingPublisher, RetrySettings, connection
from beam_hedge.testing import Reply
from tests.server.aging_server import aging
from tests.server.connecting import open_all, states
from tests.server.serving import EAGER, PATIENCE, TOPIC, UNHURRIED, eventually, serving

if TYPE_CHECKING:
    from beam_hedge import HedgingSettings, PublishOutcome

QUICK_RETRY = RetrySettings(initial_retry_delay=0.01, max_retry_delay=0.01)
PATIENT_RETRY = RetrySettings(initial_retry_delay=0.05, retry_delay_multiplier=1, max_retry_delay=0.05)


@pytest.fixture
def soon_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has connections given up after a second, not thirty."""
    monkeypatch.setattr(connection, "DEAD_AFTER", 1.0)


@pytest.mark.usefixtures("soon_dead")
def test_what_is_out_on_a_connection_that_is_replaced_still_gets_its_answer() -> None:
    """A path that comes back after it was given up delivers what it held; nothing was sent twice."""
    with serving(relay=True) as server, HedgingPublisher(TOPIC, None) as publisher:
        open_all(publisher)
        before = {state.client_port for state in server.connections()}
        frozen = server.requests[-1].peer_port
        server.freeze(frozen)
        stalled = [publisher.publish([b"held %d" % number]) for number in range(2)]
        eventually(lambda: publisher.connection_counts.replaced)
        assert [future.done() for future in stalled].count(False) == 1
        # The old one is still open, and a third has come.
        eventually(lambda: len(server.connections()) == 3)
        publisher.publish([b"meanwhile"]).result(PATIENCE)
        server.thaw(frozen)
        assert [future.result(PATIENCE).attempts for future in stalled] == [1, 1]
        eventually(lambda: len(server.connections()) == 2)
        now = {state.client_port for state in server.connections()}
    assert before - now == {frozen}
    data = sorted(message.data for message in server.messages(TOPIC) if message.data != b"opens")
    assert data == [b"held 0", b"held 1", b"meanwhile"]


@pytest.mark.usefixtures("soon_dead")
def test_a_black_hole_is_replaced_and_costs_no_message() -> None:
    """A connection that is dead without anybody telling costs hedges, and then it is gone."""
    with serving(relay=True) as server, HedgingPublisher(TOPIC, EAGER) as publisher:
        open_all(publisher)
        hole = server.requests[-1].peer_port
        server.black_hole(hole)
        published: list[PublishOutcome] = []

        def publish_until_replaced() -> int:
            published.append(publisher.publish([b"%d" % len(published)]).result(PATIENCE))
            return publisher.connection_counts.replaced

        eventually(publish_until_replaced)
        open_all(publisher)
        eventually(lambda: hole not in {state.client_port for state in server.connections()})
        assert sorted(states(publisher)) != [0, 1]
    assert {outcome.retries for outcome in published} == {0}
    assert {b"%d" % number for number in range(len(published))} <= {
        each.data for each in server.messages(TOPIC)
    }


def test_a_cut_connection_costs_one_retry_on_the_other() -> None:
    """What was out on a line that broke goes over one that holds, whether the server had it or not."""
    release = threading.Event()
    with (
        serving(relay=True) as server,
        HedgingPublisher(TOPIC, UNHURRIED, retry_settings=QUICK_RETRY) as publisher,
    ):
        open_all(publisher)
        known = len(server.requests)
        server.script = {known + 1: Reply(until=release)}
        future = publisher.publish([b"cut"])
        server.wait_for(lambda ledger: ledger.open == 1, timeout=PATIENCE)
        server.cut(server.requests[known].peer_port)
        outcome = future.result(PATIENCE)
        release.set()
        first, second = (record.peer_port for record in server.requests[known:])
        open_all(publisher)
    assert (outcome.retries, outcome.hedges) == (1, 0)
    assert first != second


@pytest.mark.parametrize("settings", [EAGER, None], ids=["hedged", "plain"])
def test_a_server_that_is_restarted_is_found_again_by_every_connection(
    settings: HedgingSettings | None,
) -> None:
    """A restart of the service costs retries, and afterwards all connections carry traffic again."""
    with serving() as server, HedgingPublisher(TOPIC, settings, retry_settings=PATIENT_RETRY) as publisher:
        open_all(publisher)
        before = {record.peer_port for record in server.requests}
        server.stop()
        during = [publisher.publish([b"during %d" % number]) for number in range(4)]
        server.start()
        for future in during:
            assert future.result(PATIENCE).message_ids
        open_all(publisher)
        for _ in range(4):
            publisher.publish([b"after"]).result(PATIENCE)
        after = {record.peer_port for record in server.requests[-4:]}
    assert len(after) == 2
    assert not before & after


@pytest.mark.parametrize("settings", [UNHURRIED, None], ids=["hedged", "plain"])
def test_connections_that_the_server_closes_for_their_age_fail_no_batch(
    settings: HedgingSettings | None,
) -> None:
    """Front ends close connections as they age; traffic goes on without a failure."""
    with aging(age_ms=200) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("PUBSUB_EMULATOR_HOST", server.endpoint)
        with HedgingPublisher(TOPIC, settings, retry_settings=QUICK_RETRY) as publisher:
            published = 0
            # So that each of the two connections has been closed several times.
            while len(set(server.peers)) < 10:
                futures = [publisher.publish([b"x"]) for _ in range(8)]
                for future in futures:
                    assert future.result(PATIENCE).message_ids
                published += len(futures)
            assert publisher.connection_counts.replaced == 0
    assert len(server.peers) >= published
