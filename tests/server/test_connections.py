"""Which TCP connection an attempt takes, told by the peer ports that the server sees."""

from __future__ import annotations

import functools
import threading

import grpc
import pytest

from beam_hedge import HedgingPublisher, RetrySettings
from beam_hedge.testing import CUT, NEVER, Reply
from tests.server.connecting import open_all
from tests.server.serving import EAGER, PATIENCE, TOPIC, all_ended, by_attempt, by_number, serving

QUICK_RETRY = RetrySettings(initial_retry_delay=0.01, max_retry_delay=0.01)


@pytest.mark.parametrize("told", [None, 1, 8])
def test_a_publisher_has_as_many_connections_as_it_was_told(told: int | None) -> None:
    """Each connection is a TCP connection of its own, so that one that stalls does not stall the others."""
    connections = told or 2
    make = HedgingPublisher if told is None else functools.partial(HedgingPublisher, connections=told)
    release = threading.Event()
    with serving() as server, make(TOPIC, None) as publisher:
        open_all(publisher, connections)
        server.script = Reply(until=release)
        futures = [publisher.publish([b"%d" % number]) for number in range(16)]
        server.wait_for(lambda ledger: ledger.open == 16, timeout=PATIENCE)
        ports = [record.peer_port for record in server.requests if record.messages[0].data != b"opens"]
        release.set()
        for future in futures:
            future.result(PATIENCE)
    assert len(set(ports)) == connections
    # Spread evenly, too: a connection carries no more than its share.
    assert {ports.count(port) for port in ports} == {16 // connections}


def test_a_hedge_takes_another_connection_than_the_original() -> None:
    """A copy on the connection that stalls would be late as well."""
    with serving(by_attempt(NEVER, None)) as server, HedgingPublisher(TOPIC, EAGER) as publisher:
        for number in range(5):
            assert publisher.publish([b"%d" % number]).result(PATIENCE).winner == 1
        records = all_ended(server, 10)
    pairs = [{record.peer_port for record in records if record.messages[0].data == b"%d" % n} for n in range(5)]
    assert [len(pair) for pair in pairs] == [2] * 5


def test_live_attempts_of_a_batch_share_no_connection_while_there_is_another() -> None:
    """The second hedge keeps off the connections of the original and of the first hedge."""
    with (
        serving(by_attempt(NEVER, NEVER, None)) as server,
        HedgingPublisher(TOPIC, EAGER, connections=3) as publisher,
    ):
        assert publisher.publish([b"x"]).result(PATIENCE).winner == 2
        records = all_ended(server, 3)
    assert len({record.peer_port for record in records}) == 3


def test_more_attempts_than_connections_share_them() -> None:
    """A batch that is late on every connection is still hedged."""
    with serving(by_attempt(NEVER, NEVER, NEVER, None)) as server, HedgingPublisher(TOPIC, EAGER) as publisher:
        outcome = publisher.publish([b"x"]).result(PATIENCE)
        records = all_ended(server, 4)
    assert (outcome.winner, outcome.hedges) == (3, 3)
    ports = [record.peer_port for record in records]
    assert sorted(ports.count(port) for port in set(ports)) == [2, 2]


def test_a_retry_takes_another_connection_than_the_failed_try() -> None:
    """What made a try fail may be its connection."""
    refuse = Reply(status=grpc.StatusCode.UNAVAILABLE)
    with (
        serving(by_number(refuse, refuse)) as server,
        HedgingPublisher(TOPIC, None, retry_settings=QUICK_RETRY) as publisher,
    ):
        outcome = publisher.publish([b"x"]).result(PATIENCE)
    assert (outcome.retries, outcome.attempts, outcome.hedges) == (2, 3, 0)
    first, second, third = (record.peer_port for record in server.requests)
    assert first != second != third


def test_one_connection_carries_all_attempts_if_there_is_only_one() -> None:
    """With `connections=1` hedges and retries go on, on the connection that there is."""
    script = by_number(Reply(status=grpc.StatusCode.UNAVAILABLE), NEVER)
    with (
        serving(script) as server,
        HedgingPublisher(TOPIC, EAGER, retry_settings=QUICK_RETRY, connections=1) as publisher,
    ):
        outcome = publisher.publish([b"x"]).result(PATIENCE)
        records = all_ended(server, 3)
    assert (outcome.retries, outcome.winner) == (1, 1)
    assert len({record.peer_port for record in records}) == 1


def test_a_frozen_connection_costs_a_hedge_delay_and_no_message() -> None:
    """A network path that stalls holds back a batch for the hedge delay only."""
    with serving(relay=True) as server, HedgingPublisher(TOPIC, EAGER) as publisher:
        open_all(publisher)
        server.freeze(server.requests[0].peer_port)
        stalled = [publisher.publish([b"stalled %d" % number]) for number in range(4)]
        outcomes = [future.result(PATIENCE) for future in stalled]
        server.thaw(server.requests[0].peer_port)
    # The least loaded connection comes first, so at least one of the four meets the frozen one, and not all.
    assert {outcome.hedges > 0 for outcome in outcomes} == {True, False}
    sent = {b"opens", *(b"stalled %d" % number for number in range(4))}
    assert {message.data for message in server.messages(TOPIC)} == sent


def test_a_cut_connection_is_retried_on_the_other_and_opened_again() -> None:
    """A connection that breaks costs a retry, and the publisher soon has all its connections again."""
    with (
        serving(by_number(CUT), relay=True) as server,
        HedgingPublisher(TOPIC, None, retry_settings=QUICK_RETRY) as publisher,
    ):
        outcome = publisher.publish([b"cut"]).result(PATIENCE)
        assert outcome.retries >= 1
        open_all(publisher)
        release = threading.Event()
        server.script = Reply(until=release)
        futures = [publisher.publish([b"%d" % number]) for number in range(4)]
        server.wait_for(lambda ledger: ledger.open == 4, timeout=PATIENCE)
        release.set()
        for future in futures:
            future.result(PATIENCE)
        cut, *rest = (record.peer_port for record in server.requests if record.messages[0].data != b"opens")
    assert cut not in rest
    assert len(set(rest)) == 2


def test_a_server_that_comes_back_is_found_again() -> None:
    """A restart of the service costs retries, not messages."""
    patient = RetrySettings(initial_retry_delay=0.05, retry_delay_multiplier=1, max_retry_delay=0.05)
    with serving() as server, HedgingPublisher(TOPIC, None, retry_settings=patient) as publisher:
        publisher.publish([b"before"]).result(PATIENCE)
        server.stop()
        during = publisher.publish([b"during"])
        server.start()
        assert during.result(PATIENCE).message_ids
    assert {message.data for message in server.messages(TOPIC)} == {b"before", b"during"}
