"""Flow control is at its limit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from google.cloud.pubsub_v1.publisher.exceptions import FlowControlLimitError
from google.cloud.pubsub_v1.types import LimitExceededBehavior, PublishFlowControl

from beam_hedge import HedgingPublisher, WrongThreadError
from beam_hedge.testing import Reply
from tests.faults.publishing import RETRY, Caller, stored
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, eventually, held, serving

if TYPE_CHECKING:
    from beam_hedge.testing import RequestRecord
    from tests.faults.row import Matrix

SECTION = "The program that publishes"
MESSAGES = 50


def _limits(behaviour: LimitExceededBehavior, messages: int) -> PublishFlowControl:
    return PublishFlowControl(message_limit=messages, byte_limit=1_000_000, limit_exceeded_behavior=behaviour)


def test_flow_control_is_at_its_limit(matrix: Matrix) -> None:
    """Callers wait while as much is out as may be, and no more than that is ever held in memory."""
    most_out: list[int] = []

    def script(_: RequestRecord) -> Reply:
        most_out.append(server.ledger().open)
        return Reply(delay=0.02)

    with (
        serving() as server,
        HedgingPublisher(
            TOPIC, UNHURRIED, retry_settings=RETRY, flow_control=_limits(LimitExceededBehavior.BLOCK, 5)
        ) as publisher,
        ThreadPoolExecutor(8) as pool,
    ):
        server.script = script
        caller = Caller(publisher)
        list(pool.map(lambda number: caller.publish(b"message %d" % number), range(MESSAGES)))
        caller.wait()
    row = caller.row(
        matrix,
        "flow control is at its limit of 5 messages: 8 threads wait",
        section=SECTION,
        stored=stored(server),
    )
    assert (row.acknowledged, row.duplicated) == (MESSAGES, 0)
    assert max(most_out) <= 5


def test_flow_control_refuses(matrix: Matrix) -> None:
    """A caller who would rather not wait is told of each batch that was not taken."""
    refused: list[bytes] = []
    with (
        serving() as server,
        HedgingPublisher(
            TOPIC, UNHURRIED, retry_settings=RETRY, flow_control=_limits(LimitExceededBehavior.ERROR, 5)
        ) as publisher,
    ):
        caller = Caller(publisher)
        with held(server):
            for number in range(MESSAGES):
                message = b"message %d" % number
                try:
                    caller.publish(message)
                except FlowControlLimitError:
                    refused.append(message)
        caller.wait()
    row = caller.row(
        matrix,
        "flow control is at its limit of 5 messages, and set to raise",
        section=SECTION,
        stored=stored(server),
        refused=refused,
    )
    assert (row.acknowledged, row.failed, row.duplicated) == (5, MESSAGES - 5, 0)


def test_a_callback_publishes_again_at_the_limit(matrix: Matrix) -> None:
    """A callback that would have to wait for itself is told so, and nothing stands still."""
    refused: list[bytes] = []
    with (
        serving() as server,
        HedgingPublisher(
            TOPIC, UNHURRIED, retry_settings=RETRY, flow_control=_limits(LimitExceededBehavior.BLOCK, 1)
        ) as publisher,
    ):
        caller = Caller(publisher)

        def again(number: int) -> None:
            message = b"again %d" % number
            try:
                caller.publish(message)
            except WrongThreadError:
                refused.append(message)

        for number in range(MESSAGES):
            with held(server):
                future = caller.publish(b"message %d" % number)
                future.add_done_callback(lambda _, number=number: again(number))  # type: ignore[misc]
            future.result(PATIENCE)
        eventually(lambda: len(caller.sent) + len(refused) == 2 * MESSAGES)
        caller.wait()
    row = caller.row(
        matrix,
        "each callback publishes, and flow control is at its limit",
        section=SECTION,
        stored=stored(server),
        refused=refused,
    )
    assert row.failed == MESSAGES == row.acknowledged
