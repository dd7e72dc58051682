"""Which batches share a request, as the engine's thread finds them waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from beam_hedge.batch import Batch, seal
from beam_hedge.shared_request import MAX_BYTES
from tests.unit.dispatching import TOPIC, contents, dispatching

if TYPE_CHECKING:
    from tests.unit.dispatching import Dispatching

OTHER = "projects/p-test/topics/other"


def sent(bench: Dispatching) -> list[list[bytes]]:
    """Returns what each request held, in the order of their sending."""
    return [contents(call) for call in bench.calls]


def answer_all(bench: Dispatching) -> None:
    """Answers all that is out."""
    for call in list(bench.calls):
        bench.answer(call)


def test_those_that_wait_together_share() -> None:
    """Bundles of one message that are found waiting cost one request, in the order of their coming."""
    with dispatching() as bench:
        bench.warm(1, 2, 3)
        futures = [bench.accept(thread) for thread in (2, 3, 1)]
        bench.run()
        assert sent(bench) == [[b"2", b"3", b"1"]]
        answer_all(bench)
        assert [future.result(0).message_ids for future in futures] == [("2",), ("3",), ("1",)]


def test_one_that_waits_alone_is_sent_at_once() -> None:
    """None is held back for company: no time passes between its acceptance and its sending."""
    with dispatching() as bench:
        bench.warm(1, 2)
        future = bench.accept(1)
        bench.run(0)
        assert sent(bench) == [[b"1"]]
        bench.accept(2)
        bench.run(0)
        assert sent(bench) == [[b"1"], [b"2"]]
        answer_all(bench)
        assert not future.result(0).shared


def test_the_first_batch_of_a_thread_goes_alone() -> None:
    """Of a thread that has never waited for a batch nobody knows whether it will."""
    with dispatching() as bench:
        for thread in range(4):
            bench.accept(thread)
        bench.run()
        assert sent(bench) == [[b"0"], [b"1"], [b"2"], [b"3"]]
        answer_all(bench)


@pytest.mark.parametrize("new", [1, 2])
def test_a_thread_that_is_new_takes_no_company(new: int) -> None:
    """A first batch is not put into a request of others, and others are not put into its own."""
    with dispatching() as bench:
        bench.warm(*({1, 2, 3} - {new}))
        for thread in (1, 2, 3):
            bench.accept(thread)
        bench.run()
        wanted = [[b"1"], [b"2", b"3"]] if new == 1 else [[b"1"], [b"2"], [b"3"]]
        assert sent(bench) == wanted
        answer_all(bench)


def test_a_thread_with_something_out_goes_alone() -> None:
    """Who publishes before the earlier batch is back gets a request for each, and the others share."""
    with dispatching() as bench:
        bench.warm(1, 2, 3)
        bench.accept(1, b"first")
        bench.run()
        bench.accept(2)
        bench.accept(3)
        bench.accept(1, b"second")
        bench.run()
        assert sent(bench) == [[b"first"], [b"2", b"3"], [b"second"]]
        answer_all(bench)


def test_a_thread_puts_one_batch_into_a_request() -> None:
    """Of several batches that a thread has waiting, each is in a request of its own, in their order."""
    with dispatching() as bench:
        bench.warm(1, 2)
        for thread, data in ((1, b"1a"), (1, b"1b"), (2, b"2a"), (1, b"1c")):
            bench.accept(thread, data)
        bench.run()
        assert sent(bench) == [[b"1a"], [b"1b"], [b"2a"], [b"1c"]]
        answer_all(bench)


@pytest.mark.parametrize("end", ["answered", "failed", "cancelled"])
def test_a_thread_whose_batch_has_come_back_shares_again(end: str) -> None:
    """However a batch has ended, its thread waits for nothing any more."""
    with dispatching() as bench:
        bench.warm(1, 2)
        futures = [bench.accept(1), bench.accept(2)]
        bench.run()
        if end == "answered":
            answer_all(bench)
        elif end == "failed":
            bench.calls[0].answer_ids(9)
        else:
            assert all(future.cancel() for future in futures)
        bench.run()
        bench.calls.clear()
        bench.accept(1)
        bench.accept(2)
        bench.run()
        assert sent(bench) == [[b"1", b"2"]]
        answer_all(bench)


def test_topics_are_not_mixed() -> None:
    """A request has one topic; each message arrives where it belongs."""
    with dispatching() as bench:
        bench.warm(1, 2, 3, 4)
        for thread, topic in ((1, TOPIC), (2, TOPIC), (3, OTHER), (4, OTHER)):
            bench.accept(thread, topic=topic)
        bench.run()
        assert sent(bench) == [[b"1", b"2"], [b"3", b"4"]]
        assert bench.calls[1].request == b"".join(seal(OTHER, [data]).request for data in (b"3", b"4"))
        answer_all(bench)


def test_a_request_has_a_hundred_messages_at_most() -> None:
    """Sharing makes no larger batches than the default settings do, and leaves nobody out."""
    with dispatching() as bench:
        bench.warm(1, 2, 3)
        for thread, messages in ((1, 60), (2, 40), (3, 1)):
            bench.accept(thread, *[b"x"] * messages)
        bench.run()
        assert [len(each) for each in sent(bench)] == [100, 1]
        answer_all(bench)


@pytest.mark.parametrize(("more", "requests"), [(0, 1), (1, 2)])
def test_a_request_has_a_million_bytes_at_most(more: int, requests: int) -> None:
    """The limit of the bytes is exact, and counted in bytes of the encoded request."""
    with dispatching() as bench:
        bench.warm(1, 2)
        small = seal(TOPIC, [b"small"])
        empty = seal(TOPIC, [b"x" * 900_000])
        room = MAX_BYTES - len(small.request) - len(empty.request)
        large = seal(TOPIC, [b"x" * (900_000 + room + more)])
        assert len(large.request) + len(small.request) == MAX_BYTES + more
        bench.accept_batch(1, large)
        bench.accept_batch(2, small)
        bench.run()
        assert len(bench.calls) == requests
        assert max(len(call.request) for call in bench.calls) <= MAX_BYTES
        answer_all(bench)


def test_a_batch_that_must_be_alone_splits_the_line() -> None:
    """A full batch of a large bundle takes no company, and those behind it keep their order."""
    with dispatching() as bench:
        bench.warm(1, 2, 3, 4, 5)
        for thread in (1, 2, 3, 4, 5):
            bench.accept(thread, may_share=thread != 3)
        bench.run()
        assert sent(bench) == [[b"1", b"2"], [b"3"], [b"4", b"5"]]
        answer_all(bench)


def test_what_is_cancelled_while_it_waits_leaves_the_others_together() -> None:
    """A gap in the line costs the others nothing, and its own messages are not sent."""
    with dispatching() as bench:
        bench.warm(1, 2, 3, 4)
        futures = [bench.accept(thread) for thread in (1, 2, 3, 4)]
        assert futures[0].cancel()
        assert futures[2].cancel()
        bench.run()
        assert sent(bench) == [[b"2", b"4"]]
        assert repr(bench.flow).startswith("<FlowController 2 batches, 2 messages")
        answer_all(bench)


def test_a_shared_request_is_the_requests_strung_together() -> None:
    """What the service reads is one topic and all messages, attributes included, byte for byte."""
    with dispatching() as bench:
        bench.warm(1, 2)
        batches = [Batch(TOPIC, seal(TOPIC, [b"%d" % n] * n).request, n) for n in (1, 2)]
        for thread, batch in zip((1, 2), batches, strict=True):
            bench.accept_batch(thread, batch)
        bench.run()
        [call] = bench.calls
        assert call.request == batches[0].request + batches[1].request
        answer_all(bench)
