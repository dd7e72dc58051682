"""C02. One empty message made the service refuse its bundle for ever; one without data crashed the sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from beam_hedge import InvalidMessageError, WriteToPubSubHedged
from tests.beam.collecting import run_for_failed
from tests.beam.pipelines import make_fn
from tests.issues.inputs import WITH_EMPTY_ONES
from tests.server.serving import TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    from apache_beam.io.gcp.pubsub import PubsubMessage

EMPTY = [WITH_EMPTY_ONES[1], WITH_EMPTY_ONES[2]]


@pytest.mark.parametrize("empty", EMPTY, ids=["no attributes", "None"])
def test_an_empty_message_is_rejected_before_sending(empty: PubsubMessage) -> None:
    """A message with neither data nor attributes fails in `process`, and the error says what it lacks."""
    with serving() as server:
        write_fn = make_fn(UNHURRIED, with_attributes=True)
        write_fn.setup()
        write_fn.start_bundle()
        write_fn.process(WITH_EMPTY_ONES[0])
        with pytest.raises(InvalidMessageError, match="must have data or attributes"):
            write_fn.process(empty)
        write_fn.teardown()
        assert server.ledger().requests == 0


@pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
def test_a_message_of_attributes_alone_is_valid(runner: str) -> None:
    """With dead letters on, the two empty ones come out, and the other three are in one request."""
    with serving() as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, with_attributes=True, dead_letter=True)
        _, failed = run_for_failed(WITH_EMPTY_ONES, transform, runner)
        stored = [(message.data, dict(message.attributes)) for message in server.messages(TOPIC)]
        assert server.ledger().requests == server.ledger().answered == 1
    assert stored == [(b"a", {}), (b"", {"a": "1"}), (b"c", {})]
    assert [letter.element for letter in failed] == EMPTY
    assert {letter.reason for letter in failed} == {
        "a message must have data or attributes; this one has neither"
    }
