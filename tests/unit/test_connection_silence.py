"""How long a connection may owe answers before it is given up, and what counts as a sign of life."""

from __future__ import annotations

import grpc
import pytest

from beam_hedge.connection import DEAD_AFTER, Connection
from beam_hedge.interfaces import Refusal

JUST_BEFORE = DEAD_AFTER - 0.001


def test_it_is_dead_when_a_request_was_out_without_a_word_for_30_seconds() -> None:
    """A path that is gone for good is given up after 30 s, and not a moment earlier."""
    assert DEAD_AFTER == 30
    connection = Connection(0)
    connection.sent("a", 100.0)
    assert not connection.is_dead(100.0 + JUST_BEFORE)
    assert connection.is_dead(100.0 + DEAD_AFTER)


def test_an_idle_connection_is_never_dead() -> None:
    """A publisher without traffic keeps the connections that it has."""
    connection = Connection(0)
    assert not connection.is_dead(1e9)
    connection.sent("a", 0.0)
    connection.answered("a", 1.0)
    assert not connection.is_dead(1e9)
    connection.sent("b", 100.0)
    connection.ended("b", expired=False)
    assert not connection.is_dead(1e9)


def test_the_silence_begins_with_the_oldest_request_that_is_out() -> None:
    """Requests that are sent on and on into a dead connection do not hide that it is dead."""
    connection = Connection(0)
    for second in range(30):
        connection.sent(second, float(second))
    assert connection.is_dead(DEAD_AFTER)


def test_each_answer_begins_it_anew() -> None:
    """A slow server is not a dead connection, however much it owes."""
    connection = Connection(0)
    for request in range(4):
        connection.sent(request, 0.0)
    connection.answered(3, 29.0)
    assert not connection.is_dead(29.0 + JUST_BEFORE)
    assert connection.is_dead(29.0 + DEAD_AFTER)


def test_what_ends_without_an_answer_does_not_end_the_silence() -> None:
    """A dead connection is found although hedges win and what it holds is cancelled each time."""
    connection = Connection(0)
    connection.sent("a", 0.0)
    connection.sent("b", 5.0)
    connection.ended("a", expired=False)
    assert connection.is_dead(DEAD_AFTER)
    connection = Connection(0)
    connection.sent("a", 0.0)
    connection.overdue("a", 1.0)
    connection.ended("a", expired=False)
    connection.sent("probe", 29.0)
    assert not connection.is_dead(JUST_BEFORE)
    assert connection.is_dead(DEAD_AFTER)


@pytest.mark.parametrize(
    "status",
    [
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    ],
)
def test_a_refusal_of_the_server_shows_life(status: grpc.StatusCode) -> None:
    """A connection that carries errors of the service works, and is not held against it."""
    assert Refusal(status, "no").shows_life


@pytest.mark.parametrize(
    "refusal",
    [
        Refusal(grpc.StatusCode.DEADLINE_EXCEEDED, "no"),
        Refusal(grpc.StatusCode.UNAVAILABLE, "no"),
        Refusal(grpc.StatusCode.CANCELLED, "no"),
        Refusal(grpc.StatusCode.INTERNAL, "ValueError", final=True),
    ],
    ids=lambda refusal: refusal.status.name,
)
def test_what_this_process_may_have_said_itself_shows_no_life(refusal: Refusal) -> None:
    """A connection is not trusted again because of a deadline that passed or a line that broke."""
    assert not refusal.shows_life
