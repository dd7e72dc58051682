"""C01. Attribute limits were counted in characters, and values that are no text got as far as the service.

The service refused the whole bundle again and again, with an error that did not say which message, let alone
which attribute; or the client crashed inside protobuf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage

from beam_hedge import InvalidMessageError, WriteToPubSubHedged
from tests.beam.collecting import run_for_failed
from tests.beam.pipelines import RUNNERS, make_fn, run_pipeline
from tests.issues.inputs import BAD_ATTRIBUTES, LONGEST_VALUE
from tests.server.serving import TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    from typing import Any

BAD = pytest.mark.parametrize(("attributes", "named"), BAD_ATTRIBUTES.values(), ids=BAD_ATTRIBUTES)


@BAD
def test_the_element_is_rejected_before_anything_is_sent(attributes: dict[Any, Any], named: list[str]) -> None:
    """`process` fails with an error that names the attribute and its size or type; no request carries it."""
    with serving() as server:
        write_fn = make_fn(UNHURRIED, with_attributes=True)
        write_fn.setup()
        write_fn.start_bundle()
        with pytest.raises(InvalidMessageError) as caught:
            write_fn.process(PubsubMessage(b"x", attributes))
        write_fn.teardown()
        assert server.ledger().requests == 0
    assert all(name in str(caught.value) for name in named)


@BAD
def test_the_element_is_a_dead_letter_and_others_are_published(
    attributes: dict[Any, Any], named: list[str]
) -> None:
    """With dead letters on, only the message with the bad attribute is kept back, and the error says why."""
    bad = PubsubMessage(b"x", attributes)
    with serving() as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, with_attributes=True, dead_letter=True)
        _, failed = run_for_failed([PubsubMessage(b"good", LONGEST_VALUE), bad], transform)
        [message] = server.messages(TOPIC)
        assert server.ledger().requests == 1
    assert (message.data, message.attributes) == (b"good", LONGEST_VALUE)
    [letter] = failed
    assert letter.element == bad
    assert letter.status == "INVALID_ARGUMENT"
    assert all(name in letter.reason for name in named)


@pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
def test_a_value_of_1024_bytes_passes(runner: str) -> None:
    """What the service takes is not refused by this sink, counted in bytes."""
    with serving() as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, with_attributes=True)
        run_pipeline([PubsubMessage(b"x", LONGEST_VALUE)], transform, RUNNERS[runner])
        [message] = server.messages(TOPIC)
    assert message.attributes == LONGEST_VALUE
