"""What is known of one connection: what it has out, when it is suspect, and when it is tried again."""

from __future__ import annotations

import pytest

from beam_hedge.connection import Connection, lag_patience
from beam_hedge.settings import HedgingSettings


def suspect(at: float = 1.0) -> Connection:
    """Makes a connection that is suspect from that time on; its request `"overdue"` is out."""
    connection = Connection(0)
    connection.sent("overdue", at - 1)
    assert connection.overdue("overdue", at)
    return connection


def probes(connection: Connection, until: float) -> list[float]:
    """Sends a request that is not answered whenever a probe is due; returns the times, on a grid of 0.25 s."""
    sent = []
    for step in range(int(until * 4) + 1):
        if connection.probe_due(step / 4):
            sent.append(step / 4)
            connection.sent(("probe", step), step / 4)
    return sent


def test_what_is_out_is_counted() -> None:
    """A connection is as loaded as it has requests without an end, whichever end it is."""
    connection = Connection(7)
    for request in range(3):
        connection.sent(request, 1.0 + request)
    assert (connection.out, connection.last_sent) == (3, 3.0)
    connection.answered(0, 4.0)
    assert connection.out == 2
    connection.ended(1, expired=False)
    assert connection.out == 1
    connection.ended(2, expired=False)
    assert connection.out == 0


def test_its_state_can_be_read() -> None:
    """Whoever looks at a publisher sees which connections are open or suspect, and what they have out."""
    connection = Connection(7)
    assert repr(connection) == "<connection 7: not open, 0 out>"
    connection.ready = True
    connection.sent("a", 1.0)
    assert repr(connection) == "<connection 7: ready, 1 out>"
    connection.overdue("a", 2.0)
    assert repr(connection) == "<connection 7: suspect, 1 out>"


def test_an_overdue_request_makes_it_suspect_once() -> None:
    """A connection that stalls is suspected once, however many batches it holds up."""
    connection = Connection(0)
    connection.sent("a", 0.0)
    connection.sent("b", 0.1)
    assert not connection.suspect
    assert connection.overdue("a", 1.0)
    assert connection.suspect
    assert not connection.overdue("b", 1.1)
    assert not connection.overdue("a", 2.0)
    assert connection.suspect


def test_a_request_that_a_newer_one_has_passed_speaks_for_the_connection() -> None:
    """What a slow server holds back is not blamed on a connection that goes on carrying answers."""
    connection = Connection(0)
    for request in ("a", "b", "c"):
        connection.sent(request, 0.0)
    connection.answered("b", 0.5)
    assert not connection.overdue("a", 1.0)
    assert not connection.suspect
    assert connection.overdue("c", 1.0)


@pytest.mark.parametrize("end", ["answered", "ended"])
def test_a_request_that_is_no_longer_out_is_not_overdue(end: str) -> None:
    """A connection is not suspected for what has ended in the meantime."""
    connection = Connection(0)
    connection.sent("a", 0.0)
    if end == "answered":
        connection.answered("a", 0.5)
    else:
        connection.ended("a", expired=False)
    assert not connection.overdue("a", 1.0)
    assert not connection.suspect


def test_any_answer_makes_it_trusted_again() -> None:
    """A connection that stood still is used like the others as soon as it moves again."""
    connection = suspect()
    connection.sent("b", 1.5)
    connection.answered("b", 1.6)
    assert not connection.suspect
    assert not connection.probe_due(100.0)
    # What it still owes was passed by that answer, so it is no reason to suspect it once more.
    assert not connection.overdue("overdue", 2.0)


def test_the_end_of_a_request_without_an_answer_proves_nothing() -> None:
    """A suspect whose request is cancelled, because a hedge won, stays suspect."""
    connection = suspect()
    connection.ended("overdue", expired=False)
    assert connection.suspect
    assert connection.out == 0


def test_a_suspect_is_probed_ever_less_often_and_at_least_every_8_seconds() -> None:
    """A connection that is dead costs few batches their hedge delay, and one that works again is found."""
    connection = suspect(at=0.0)
    assert probes(connection, 45.0) == [1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0, 40.0]


def test_an_answer_makes_probes_of_a_later_suspicion_frequent_again() -> None:
    """Each stall starts afresh: a connection is not left alone for long because of an earlier one."""
    connection = suspect(at=0.0)
    last = probes(connection, 20.0)[-1]
    connection.answered(("probe", int(last * 4)), 20.0)
    connection.sent("again", 21.0)
    assert connection.overdue("again", 22.0)
    assert not connection.probe_due(22.75)
    assert connection.probe_due(23.0)


def test_a_trusted_connection_is_never_probed() -> None:
    """Only what was suspected is tried."""
    connection = Connection(0)
    assert not connection.probe_due(1e9)
    connection.sent("a", 0.0)
    assert not connection.probe_due(1e9)


def test_it_lags_when_a_much_newer_request_has_its_answer_elsewhere() -> None:
    """A connection that falls behind is left alone before its requests are overdue."""
    connection = Connection(0)
    connection.sent("a", 10.0)
    connection.sent("b", 11.0)
    assert not connection.lags(10.1, patience=0.1)
    assert connection.lags(10.2, patience=0.1)
    connection.answered("a", 11.1)
    assert not connection.lags(11.05, patience=0.1)
    assert connection.lags(11.2, patience=0.1)
    connection.answered("b", 11.3)
    assert not connection.lags(1e9, patience=0.1)


def test_a_request_that_was_passed_does_not_make_it_lag() -> None:
    """One message that the server holds back does not take a connection out of use."""
    connection = Connection(0)
    connection.sent("slow", 10.0)
    connection.sent("quick", 10.5)
    connection.answered("quick", 10.6)
    assert connection.newest_answered == 10.5
    assert not connection.lags(20.0, patience=0.1)
    connection.answered("slow", 14.0)
    assert connection.newest_answered == 10.5


def test_how_late_is_late_follows_the_hedge_delay() -> None:
    """Users who hedge later also let answers come later; without hedging nothing is late."""
    assert lag_patience(HedgingSettings(hedge_delay=2)) == pytest.approx(0.2)
    assert lag_patience(HedgingSettings(hedge_delay=0.1)) == pytest.approx(0.01)
    assert lag_patience(None) == float("inf")
