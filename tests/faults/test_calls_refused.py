"""The service answers calls with errors that will come again: only the caller of each is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge import HedgingPublisher, WriteToPubSubHedged
from beam_hedge.retry import RETRYABLE
from beam_hedge.testing import Reply
from tests.beam.collecting import run_for_failed
from tests.beam.pipelines import close_publishers
from tests.faults.publishing import RETRY, Caller, stored
from tests.server.serving import TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    from beam_hedge.testing import RequestRecord
    from tests.faults.row import Matrix

SECTION = "Errors that the service answers"
FINAL = set(grpc.StatusCode) - RETRYABLE - {grpc.StatusCode.OK}
GRPC_LIMIT = 4 * 1024 * 1024
MESSAGES = 20


@pytest.mark.parametrize("status", sorted(each.name for each in FINAL))
def test_a_final_status(status: str, matrix: Matrix) -> None:
    """An error that will come again is told at once: one request, no retry, no hedge, nobody else touched."""
    refused = b"message 3"

    def script(record: RequestRecord) -> Reply | None:
        return Reply(status=grpc.StatusCode[status]) if record.messages[0].data == refused else None

    with (
        serving(script) as server,
        HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher,
    ):
        caller = Caller(publisher)
        caller.publish_each(MESSAGES)
        caller.wait()
    row = caller.row(matrix, f"{status} for one message", section=SECTION, stored=stored(server))
    assert (row.acknowledged, row.failed, row.duplicated) == (MESSAGES - 1, 1, 0)
    [error] = caller.errors
    assert (error.status.name, error.attempts) == (status, 1)
    assert server.ledger().requests == MESSAGES


@pytest.mark.parametrize("ids", [0, 2, 4])
def test_a_wrong_number_of_ids(ids: int, matrix: Matrix) -> None:
    """An answer that does not say which messages are stored is an error, though a retry would make copies."""
    with (
        serving({1: Reply(ids=ids)}) as server,
        HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher,
    ):
        caller = Caller(publisher)
        caller.publish(b"a", b"b", b"c")
        caller.wait()
        caller.publish_each(MESSAGES)
        caller.wait()
    row = caller.row(matrix, f"{ids} ids for 3 messages", section=SECTION, stored=stored(server))
    assert (row.acknowledged, row.failed, row.duplicated) == (MESSAGES, 3, 0)


def test_a_permission_that_is_taken_away_and_given_back(matrix: Matrix) -> None:
    """Who may not publish is told so at once; with the right back, everything goes on with no restart."""
    with serving() as server, HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher:
        caller = Caller(publisher)
        for name, script in (
            ("before", None),
            ("without", Reply(status=grpc.StatusCode.PERMISSION_DENIED)),
            ("after", None),
        ):
            server.script = script
            caller.publish_each(MESSAGES, name)
            caller.wait()
    row = caller.row(
        matrix, "PERMISSION_DENIED for everything, for a while", section=SECTION, stored=stored(server)
    )
    assert (row.acknowledged, row.failed, row.duplicated) == (2 * MESSAGES, MESSAGES, 0)


def test_a_topic_that_is_deleted_and_made_again(matrix: Matrix) -> None:
    """Nothing that goes to a topic that is not there passes for published."""
    with serving() as server, HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher:
        caller = Caller(publisher)
        caller.publish_each(MESSAGES, "before")
        caller.wait()
        stored_before = stored(server)
        server.delete_topic(TOPIC)
        caller.publish_each(MESSAGES, "without")
        caller.wait()
        server.create_topic(TOPIC)
        caller.publish_each(MESSAGES, "after")
        caller.wait()
    row = caller.row(
        matrix,
        "the topic is deleted in mid-run, and made again later",
        section=SECTION,
        stored=[*stored_before, *stored(server)],
    )
    assert (row.acknowledged, row.failed, row.duplicated) == (2 * MESSAGES, MESSAGES, 0)
    assert {error.status for error in caller.errors} == {grpc.StatusCode.NOT_FOUND}


def test_a_request_that_is_too_large(matrix: Matrix) -> None:
    """RESOURCE_EXHAUSTED for size can never succeed: the caller is told at once, and the others go on."""
    with (
        serving(max_receive_bytes=GRPC_LIMIT) as server,
        HedgingPublisher(TOPIC, UNHURRIED, retry_settings=RETRY) as publisher,
    ):
        caller = Caller(publisher)
        caller.publish(b"x" * GRPC_LIMIT)
        caller.publish_each(MESSAGES)
        caller.wait()
    row = caller.row(
        matrix,
        "RESOURCE_EXHAUSTED: one request is over the service's size limit",
        section=SECTION,
        stored=stored(server),
    )
    assert (row.acknowledged, row.failed, row.duplicated) == (MESSAGES, 1, 0)
    [error] = caller.errors
    assert (error.status, error.attempts) == (grpc.StatusCode.RESOURCE_EXHAUSTED, 1)


def test_refused_messages_come_out_as_dead_letters(matrix: Matrix) -> None:
    """With dead letters, messages that the service refuses take no other ones with them, and are not lost."""
    inputs = [b"message %d" % number for number in range(MESSAGES)]
    refused = set(inputs[3:6])

    def script(record: RequestRecord) -> Reply | None:
        if refused & {message.data for message in record.messages}:
            return Reply(status=grpc.StatusCode.INVALID_ARGUMENT)
        return None

    with serving(script) as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, retry_settings=RETRY, dead_letter=True)
        _, failed = run_for_failed(inputs, transform)
        close_publishers()
    dead_lettered = [each.element for each in failed]
    row = matrix.row(
        "INVALID_ARGUMENT for any request with one of three messages, in a pipeline with dead letters",
        section=SECTION,
        inputs=inputs,
        # The pipeline has ended well, which says that all others are published.
        acknowledged=[each for each in inputs if each not in dead_lettered],
        dead_lettered=dead_lettered,
        stored=stored(server),
        hedges=server.ledger().hedges,
    )
    assert set(dead_lettered) == refused
    assert row.duplicated == 0
