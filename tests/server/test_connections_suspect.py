"""A connection that stalls, over real TCP: hedged once, left alone, tried again and trusted again."""

from __future__ import annotations

import time

from beam_hedge import HedgingPublisher
from beam_hedge.testing import Reply
from tests.server.connecting import open_all, states
from tests.server.serving import EAGER, PATIENCE, TOPIC, eventually, held, serving


def test_a_frozen_connection_is_left_alone_and_found_again_when_it_thaws() -> None:
    """A stall costs one batch the hedge delay, then a probe a second at most, and nothing when it is over."""
    with serving(relay=True) as server, HedgingPublisher(TOPIC, EAGER) as publisher:
        open_all(publisher)
        frozen = server.requests[-1].peer_port
        server.freeze(frozen)
        began = time.monotonic()
        hedges: list[int] = []
        # At the latest the second batch meets it.
        while not sum(hedges):
            assert len(hedges) < 2
            hedges.append(publisher.publish([b"late"]).result(PATIENCE).hedges)
        assert sorted(states(publisher).values()) == ["ready", "suspect"]
        hedged = sum(publisher.publish([b"later"]).result(PATIENCE).hedges > 0 for _ in range(50))
        assert hedged <= time.monotonic() - began
        server.thaw(frozen)
        open_all(publisher)
        for _ in range(4):
            publisher.publish([b"after"]).result(PATIENCE)
        assert frozen in {record.peer_port for record in server.requests[-4:]}
        counts = publisher.connection_counts.take()
    assert counts["connections_suspected"] >= 1
    assert counts["connections_replaced"] == 0


def test_a_late_server_is_not_taken_for_a_late_connection() -> None:
    """One message that the server holds back costs its connection nothing, as long as others are answered."""

    def slow(record: object) -> Reply | None:
        return Reply(delay=1.0) if record.messages[0].data == b"slow" else None  # type: ignore[attr-defined]

    with serving(slow) as server, HedgingPublisher(TOPIC, EAGER, connections=1) as publisher:
        open_all(publisher, 1)
        late = publisher.publish([b"slow"])
        server.wait_for(lambda ledger: ledger.open == 1, timeout=PATIENCE)
        publisher.publish([b"quick"]).result(PATIENCE)
        # Its first hedge is sent when the original is overdue, and by then the quick one has passed it.
        server.wait_for(lambda ledger: ledger.hedges >= 1, timeout=PATIENCE)
        suspected = publisher.connection_counts.suspected
        late.result(PATIENCE)
    assert suspected == 0


def test_when_the_server_stalls_all_connections_stay_in_use() -> None:
    """A slow service makes every connection suspect, and the first answer is enough to go on as before."""
    with serving() as server, HedgingPublisher(TOPIC, EAGER) as publisher:
        open_all(publisher)
        with held(server):
            stalled = [publisher.publish([b"%d" % number]) for number in range(6)]
            eventually(lambda: list(states(publisher).values()) == ["suspect"] * 2)
            stalled += [publisher.publish([b"%d" % number]) for number in range(6, 12)]
            server.wait_for(lambda ledger: ledger.open >= 12, timeout=PATIENCE)
            originals = [record for record in server.requests if record.hedged_attempt_count == 0]
            assert len({record.peer_port for record in originals[-6:]}) == 2
        for future in stalled:
            future.result(PATIENCE)
        open_all(publisher)


def test_without_hedging_a_frozen_connection_is_not_suspect() -> None:
    """`settings=None` waits for answers, as it was asked to, and counts no suspicion."""
    with serving(relay=True) as server, HedgingPublisher(TOPIC, None) as publisher:
        open_all(publisher)
        frozen = server.requests[-1].peer_port
        server.freeze(frozen)
        stalled = [publisher.publish([b"x"]) for _ in range(4)]
        eventually(lambda: any(future.done() for future in stalled))
        assert list(states(publisher).values()) == ["ready"] * 2
        server.thaw(frozen)
        for future in stalled:
            assert future.result(PATIENCE).attempts == 1
        assert publisher.connection_counts.suspected == 0
