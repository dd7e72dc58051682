"""Back-pressure: what happens when more is published than may be out."""

from __future__ import annotations

import concurrent.futures
import threading
from typing import TYPE_CHECKING

import pytest
from google.cloud.pubsub_v1.publisher.exceptions import FlowControlLimitError
from google.cloud.pubsub_v1.types import LimitExceededBehavior, PublishFlowControl

from beam_hedge import HedgingPublisher, PublishError, WrongThreadError
from beam_hedge.testing import Reply
from tests.server.serving import PATIENCE, TOPIC, eventually, held, serving

if TYPE_CHECKING:
    from beam_hedge.testing import LocalPubSub

BLOCK, ERROR, IGNORE = (
    LimitExceededBehavior.BLOCK,
    LimitExceededBehavior.ERROR,
    LimitExceededBehavior.IGNORE,
)


def limits(behaviour: LimitExceededBehavior, messages: int = 2, size: int = 1_000_000) -> PublishFlowControl:
    """Makes flow control with small limits."""
    return PublishFlowControl(message_limit=messages, byte_limit=size, limit_exceeded_behavior=behaviour)


def wait_until_blocked(publisher: HedgingPublisher, callers: int) -> None:
    """Waits until so many callers stand in `publish()`."""
    eventually(lambda: len(publisher._flow._waiting) == callers)


def open_calls(server: LocalPubSub, calls: int) -> None:
    """Waits until so many calls are in the server."""
    server.wait_for(lambda ledger: ledger.open == calls, timeout=PATIENCE)


@pytest.mark.parametrize(
    "flow_control", [limits(BLOCK, 2), limits(BLOCK, 1000, 100)], ids=["messages", "bytes"]
)
def test_block_waits_until_something_has_come_back(flow_control: PublishFlowControl) -> None:
    """`publish()` holds its caller back at the limit, and goes on when a batch has come back."""
    release = [threading.Event() for _ in range(3)]
    with (
        serving({number: Reply(until=event) for number, event in enumerate(release, 1)}) as server,
        HedgingPublisher(TOPIC, None, flow_control=flow_control) as publisher,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        out = [publisher.publish([b"x" * 15]) for _ in range(2)]
        third = pool.submit(publisher.publish, [b"x" * 15])
        wait_until_blocked(publisher, 1)
        assert server.ledger().requests <= 2
        assert not third.done()
        open_calls(server, 2)
        release[0].set()
        assert concurrent.futures.wait(out, PATIENCE, return_when=concurrent.futures.FIRST_COMPLETED).done
        accepted = third.result(PATIENCE)
        for event in release:
            event.set()
        assert accepted.result(PATIENCE).attempts == 1
    assert server.ledger().requests == 3


def test_blocked_callers_go_on_in_their_order() -> None:
    """Nobody starves: who waits longest is next, even if a smaller batch would fit at once."""
    with (
        serving() as server,
        HedgingPublisher(TOPIC, None, flow_control=limits(BLOCK, 3)) as publisher,
        concurrent.futures.ThreadPoolExecutor(2) as pool,
    ):
        with held(server):
            publisher.publish([b"first"] * 2)
            large = pool.submit(publisher.publish, [b"large"] * 2)
            wait_until_blocked(publisher, 1)
            small = pool.submit(publisher.publish, [b"small"])
            wait_until_blocked(publisher, 2)
            open_calls(server, 1)
            assert not large.done()
            assert not small.done()
        for accepted in (large, small):
            accepted.result(PATIENCE).result(PATIENCE)
    assert server.ledger().messages == 5


def test_a_batch_over_the_whole_limit_is_admitted_alone() -> None:
    """A limit that is too small for a batch slows it down and does not block it for ever."""
    with serving() as server, HedgingPublisher(TOPIC, None, flow_control=limits(BLOCK, 1)) as publisher:
        for _ in range(3):
            assert len(publisher.publish([b"x"] * 10).result(PATIENCE).message_ids) == 10
    assert server.ledger().messages == 30


def test_error_raises_and_sends_nothing() -> None:
    """With ERROR the caller decides; the refused batch never reaches the service."""
    release = threading.Event()
    with (
        serving(Reply(until=release)) as server,
        HedgingPublisher(TOPIC, None, flow_control=limits(ERROR)) as publisher,
    ):
        accepted = publisher.publish([b"x", b"y"])
        with pytest.raises(FlowControlLimitError, match="2 messages"):
            publisher.publish([b"z"])
        release.set()
        accepted.result(PATIENCE)
        assert publisher._flow.wait_idle(PATIENCE)
        publisher.publish([b"again"]).result(PATIENCE)
    assert [message.data for message in server.messages(TOPIC)] == [b"x", b"y", b"again"]


def test_ignore_lets_everything_out() -> None:
    """With IGNORE the limits are there and hold nobody."""
    release = threading.Event()
    with (
        serving(Reply(until=release)) as server,
        HedgingPublisher(TOPIC, None, flow_control=limits(IGNORE, 1)) as publisher,
    ):
        futures = [publisher.publish([b"x"]) for _ in range(20)]
        open_calls(server, 20)
        release.set()
        for future in futures:
            future.result(PATIENCE)


def test_publishing_from_a_callback_works_while_there_is_room() -> None:
    """A chain of publishes, each from the callback of the one before, goes through."""
    done: concurrent.futures.Future[int] = concurrent.futures.Future()
    with serving() as server, HedgingPublisher(TOPIC, None) as publisher:

        def again(left: int) -> None:
            if left:
                publisher.publish([b"%d" % left]).add_done_callback(lambda _: again(left - 1))
            else:
                done.set_result(left)

        again(10)
        assert done.result(PATIENCE) == 0
    assert server.ledger().messages == 10


def test_publishing_from_a_callback_raises_where_it_would_wait_for_ever() -> None:
    """The engine's own thread is never blocked: the callback gets an error, all others go on."""
    release = threading.Event()
    seen: concurrent.futures.Future[BaseException | None] = concurrent.futures.Future()
    with (
        serving({2: Reply(until=release)}) as server,
        HedgingPublisher(TOPIC, None, flow_control=limits(BLOCK, 2)) as publisher,
    ):

        def publish_more() -> None:
            try:
                publisher.publish([b"too", b"much"])
            except WrongThreadError as error:
                seen.set_result(error)
            else:
                seen.set_result(None)

        first = publisher.publish([b"first"])
        second = publisher.publish([b"second"])
        server.wait_for(lambda ledger: ledger.requests == 2, timeout=PATIENCE)
        publisher._engine.submit(publish_more)
        assert isinstance(seen.result(PATIENCE), WrongThreadError)
        release.set()
        assert first.result(PATIENCE).attempts == second.result(PATIENCE).attempts == 1
        publisher.publish([b"third"]).result(PATIENCE)
    assert server.ledger().requests == 3


def test_permits_come_back_after_errors_and_cancellations() -> None:
    """Failed and cancelled batches do not use up the limit for good."""
    with serving() as server, HedgingPublisher(TOPIC, None, flow_control=limits(BLOCK, 1)) as publisher:
        server.delete_topic(TOPIC)
        for _ in range(5):
            assert isinstance(publisher.publish([b"x"]).exception(PATIENCE), PublishError)
        server.create_topic(TOPIC)
        with held(server):
            for _ in range(5):
                publisher.publish([b"x"]).cancel()
        publisher.publish([b"y"]).result(PATIENCE)
        assert publisher._flow.wait_idle(PATIENCE)
        assert publisher._flow.batches == 0


def test_many_callers_share_one_limit() -> None:
    """However many threads publish, no more is out than allowed, and all of it arrives."""
    most = 0
    lock = threading.Lock()
    with (
        serving() as server,
        HedgingPublisher(TOPIC, None, flow_control=limits(BLOCK, 6)) as publisher,
        concurrent.futures.ThreadPoolExecutor(16) as pool,
    ):

        def watch(_: object) -> None:
            nonlocal most
            with lock:
                most = max(most, server.ledger().open)

        server.script = watch

        def publish(number: int) -> None:
            publisher.publish([b"%d" % number, b"%d again" % number]).result(PATIENCE)

        list(pool.map(publish, range(200)))
    assert server.ledger().messages == 400
    assert 1 <= most <= 3
