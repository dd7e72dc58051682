"""What a soak keeps of each message."""

from __future__ import annotations

from typing import Any

import grpc

from beam_hedge import PublishError, PublishOutcome
from benchmarks.soaking.auditor import Stored
from benchmarks.soaking.ledger import Fate, Ledger
from benchmarks.soaking.messages import id_of, make_data, pack, unpack
from benchmarks.soaking.verdict import check_missing, check_sums


def outcome(**fields: Any) -> PublishOutcome:
    """Makes an outcome of one message, published at once unless said otherwise."""
    usual: dict[str, Any] = {
        "topic": "projects/p/topics/t",
        "message_ids": ("1",),
        "attempts": 1,
        "hedges": 0,
        "winner": 0,
        "retries": 0,
        "latency": 0.005,
        "hedges_failed": 0,
        "hedges_throttled": 0,
        "attempts_cancelled": 0,
        "messages": 1,
        "request_bytes": 100,
    }
    return PublishOutcome(**{**usual, **fields})


def failure(hedges: int) -> PublishError:
    """Makes the error of a batch."""
    return PublishError(
        "projects/p/topics/t",
        grpc.StatusCode.UNAVAILABLE,
        "",
        messages=1,
        request_bytes=100,
        attempts=1 + hedges,
        retries=0,
        hedges=hedges,
        hedges_failed=0,
        hedges_throttled=0,
        attempts_cancelled=0,
    )


def test_each_message_has_one_fate() -> None:
    """The sums of a soak are those of its messages."""
    ledger = Ledger()
    first, second = ledger.hand_over(1, 4), ledger.hand_over(1, 2)
    assert (first, second) == (range(4), range(4, 6))
    ledger.tell(1, first, Fate.ACKNOWLEDGED, apart=[2])
    books = ledger.books()
    assert (books.inputs, books.out, books.marked_out) == (6, 2, 2)
    assert books.told == {Fate.ACKNOWLEDGED: 3, Fate.DEAD_LETTER: 1}
    assert [unpack(each) for each in ledger.take_acknowledged()] == [(1, 0), (1, 1), (1, 3)]
    assert not ledger.take_acknowledged()
    assert check_sums("it", books) == []


def test_a_caller_that_is_told_twice_is_noticed() -> None:
    """A future that is settled twice, or a bundle that ends twice, is found."""
    ledger = Ledger()
    numbers = ledger.hand_over(1, 2)
    ledger.tell(1, numbers, Fate.FAILED)
    ledger.tell(1, numbers, Fate.ACKNOWLEDGED)
    found = check_sums("it", ledger.books())
    assert any("told twice of 2 messages" in each for each in found)
    assert any("-2 messages should be out, and 0 are" in each for each in found)


def test_outcomes_that_tell_of_fewer_messages_are_noticed() -> None:
    """A sink that finishes a bundle without having published all of it is found."""
    ledger = Ledger()
    numbers = ledger.hand_over(1, 5)
    ledger.note([outcome(messages=3)], messages=5)
    ledger.tell(1, numbers, Fate.ACKNOWLEDGED)
    assert check_sums("it", ledger.books()) == [
        "it: outcomes tell of 2 messages more or less than were published"
    ]


def test_what_may_have_been_published_untold_is_counted() -> None:
    """A budget is neither judged too hard, nor let off for requests that are counted twice."""
    ledger = Ledger()
    ledger.note([outcome(hedges=2), outcome(shared=True), failure(hedges=1)])
    ledger.tell(1, ledger.hand_over(1, 3), Fate.CANCELLED)
    numbers = ledger.hand_over(1, 7)
    ledger.wait_again(1, numbers)
    books = ledger.books()
    assert (books.hedges, books.published, books.perhaps, books.failed_tries) == (3, 1, 1 + 7, 1)
    assert list(ledger.take_latencies()) == [5.0, 5.0]


def test_a_message_that_is_not_stored_is_missed_until_it_is() -> None:
    """What was acknowledged and then lost cannot hide behind what is stored."""
    stored = Stored()
    stored.add(1, 0)
    stored.add(1, 2)
    stored.add(1, 2)
    assert stored.copies == 1
    assert stored.check([pack(1, 0), pack(1, 1), pack(2, 0)], now=10.0) == [0.0, 0.0]
    missing = stored.check([], now=45.0)
    assert missing == [35.0, 35.0]
    assert check_missing(missing) == ["2 messages were acknowledged and are not stored"]
    stored.add(1, 1)
    assert stored.check([], now=46.0) == [36.0]


def test_a_message_says_who_it_is() -> None:
    """An id survives its way through the service."""

    class Longest:
        def randrange(self, most: int) -> int:
            return most - 1

    data = make_data(3, 12_345, Longest(), poison=True)  # type: ignore[arg-type]
    assert id_of(data) == (3, 12_345)
    assert unpack(pack(3, 12_345)) == (3, 12_345)
