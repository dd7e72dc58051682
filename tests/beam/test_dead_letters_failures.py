"""What is nobody's bad message fails the bundle, dead letters or not: a topic, a permission, an outage."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from beam_hedge import RetrySettings, WriteToPubSubHedged
from beam_hedge.testing import NEVER, Reply
from tests.beam.collecting import Collector, create, finish, make_pipeline
from tests.beam.pipelines import batches_of
from tests.beam.test_dead_letters import by_argument, by_error_handler, by_error_handling
from tests.server.serving import TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from apache_beam.pvalue import PCollection

    from beam_hedge.testing import RequestRecord

SECRET = b"payload-that-nobody-may-see"
ALL_REFUSED = Reply(status=grpc.StatusCode.INVALID_ARGUMENT, details="no message is good enough")
SHORT = RetrySettings(initial_rpc_timeout=0.2, total_timeout=0.5, initial_retry_delay=0.01)


def publish(elements: list[bytes], **arguments: Any) -> Collector:
    """Publishes elements with dead letters on, and returns what came out."""
    pipeline, failed = make_pipeline(), Collector()
    transform = WriteToPubSubHedged(TOPIC, None, dead_letter=True, **arguments)
    failed.take((create(pipeline, elements) | transform).failed)
    finish(pipeline)
    return failed


@pytest.mark.parametrize("way", [by_argument, by_error_handler, by_error_handling])
def test_a_missing_topic_fails_the_bundle_in_each_way(
    way: Callable[[PCollection[Any], Collector], None],
) -> None:
    """A topic that was deleted does not turn a whole stream into dead letters."""
    pipeline, failed = make_pipeline(), Collector()
    way(create(pipeline, [b"x", b"y"]), failed)
    with serving() as server:
        server.delete_topic(TOPIC)
        with pytest.raises(Exception, match="NOT_FOUND"):
            finish(pipeline)
        assert server.ledger().requests == 1
    assert failed.seen == []


@pytest.mark.parametrize(
    "status", ["PERMISSION_DENIED", "UNAUTHENTICATED", "FAILED_PRECONDITION", "OUT_OF_RANGE"]
)
def test_a_final_error_fails_the_bundle(status: str) -> None:
    """A missing permission is found by its error, not by a heap of dead letters; nothing is split for it."""
    with serving(Reply(status=grpc.StatusCode[status])) as server:
        with pytest.raises(Exception, match=f"{status} after 1 attempt"):
            publish([b"x", b"y"])
        assert server.ledger().requests == 1


@pytest.mark.parametrize(
    ("reply", "status"),
    [(Reply(status=grpc.StatusCode.UNAVAILABLE), "UNAVAILABLE"), (NEVER, "DEADLINE_EXCEEDED")],
    ids=["unavailable", "no answer"],
)
def test_spent_retries_fail_the_bundle(reply: Reply, status: str) -> None:
    """An outage that outlasts the retry settings gives no message up: the runner tries the bundle again."""
    with serving(reply), pytest.raises(Exception, match=status):
        publish([b"x", b"y"], retry_settings=SHORT)


def test_an_outage_in_the_middle_of_splitting_fails_the_bundle() -> None:
    """A part that fails for another reason is not taken for bad: the whole bundle fails with that reason."""
    script = {
        1: ALL_REFUSED,
        2: Reply(status=grpc.StatusCode.PERMISSION_DENIED),
    }
    with serving(script) as server:
        with pytest.raises(Exception, match="PERMISSION_DENIED"):
            publish([b"%d" % number for number in range(4)])
        assert server.ledger().requests == 2


@pytest.mark.parametrize(("messages", "most"), [(10, 20), (1000, 40)])
def test_a_batch_of_which_every_part_is_refused_fails_the_bundle(messages: int, most: int) -> None:
    """If the service refuses all there is, it is not the messages: few more requests, no dead letters."""
    elements = [b"%d" % number for number in range(messages)]
    pipeline, failed = make_pipeline(), Collector()
    transform = WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=batches_of(1000), dead_letter=True)
    failed.take((create(pipeline, elements) | transform).failed)
    with serving(ALL_REFUSED) as server:
        with pytest.raises(Exception, match="no message is good enough"):
            finish(pipeline)
        assert server.ledger().requests <= most
        assert server.ledger().messages == 0
    assert failed.seen == []


def test_one_message_alone_that_is_refused_is_a_dead_letter() -> None:
    """A stream of tiny bundles does not stop at a bad message just because it came alone."""
    with serving(ALL_REFUSED) as server:
        failed = publish([b"alone"])
        assert server.ledger().requests == 1
    assert [(letter.element, letter.reason) for letter in failed.values] == [
        (b"alone", "no message is good enough")
    ]


def test_a_runner_that_tries_again_gets_each_dead_letter_once() -> None:
    """Dead letters of a try that failed later are not output twice, and the good ones are published."""
    denied = threading.Event()

    def script(record: RequestRecord) -> Reply | None:
        data = {message.data for message in record.messages}
        if b"bad" in data:
            return ALL_REFUSED
        if b"denied once" in data and not denied.is_set():
            denied.set()
            return Reply(status=grpc.StatusCode.PERMISSION_DENIED)
        return None

    pipeline, failed = make_pipeline("bundle_based"), Collector()
    # The first batch is split and leaves a dead letter; the second one fails the try.
    transform = WriteToPubSubHedged(TOPIC, None, batch_settings=batches_of(2), dead_letter=True)
    with serving(script) as server:
        failed.take((create(pipeline, [b"good", b"bad", b"denied once"]) | transform).failed)
        finish(pipeline)
        assert {message.data for message in server.messages(TOPIC)} == {b"good", b"denied once"}
        assert server.ledger().failed["PERMISSION_DENIED"] == 1
        assert server.ledger().failed["INVALID_ARGUMENT"] >= 3
    assert [letter.element for letter in failed.values] == [b"bad"]


@pytest.mark.parametrize(
    "reply",
    [
        ALL_REFUSED,
        Reply(status=grpc.StatusCode.PERMISSION_DENIED, details="not you"),
        Reply(status=grpc.StatusCode.INVALID_ARGUMENT, details="x" * 5000),
    ],
    ids=["all refused", "permission", "long text"],
)
def test_neither_log_nor_exception_holds_a_payload(reply: Reply, caplog: pytest.LogCaptureFixture) -> None:
    """Splitting batches and giving up writes nothing of what the messages hold, at any level of our log."""
    caplog.set_level(logging.DEBUG, logger="beam_hedge")
    with serving(reply), pytest.raises(Exception, match="not published") as caught:
        publish([SECRET] * 20)
    assert SECRET.decode() not in str(caught.value)
    assert SECRET.decode() not in caplog.text
