"""Elements that cannot be published are dead letters of the right kind, and stay out of error texts."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.testing.util import assert_that, equal_to

from beam_hedge import WriteToPubSubHedged
from beam_hedge.testing import LocalPubSub

_TOPIC = "projects/demo-project/topics/out"
_PAYLOAD = "what-the-element-holds"


def _topic_in(element: bytes) -> str:
    return element.decode()


def test_a_topic_function_that_gives_a_payload_does_not_leak_it() -> None:
    """A topic that is no topic is often part of an element: the error tells its type, never its text."""
    with LocalPubSub() as server, server.environment():
        pipeline = beam.Pipeline(runner="FnApiRunner")
        _ = pipeline | beam.Create([_PAYLOAD.encode()]) | WriteToPubSubHedged(_topic_in)
        with pytest.raises(Exception, match="no full topic name") as caught:
            pipeline.run().wait_until_finish()
    assert _PAYLOAD not in str(caught.value)


@pytest.mark.parametrize(
    "attributes", [[("a", "b")], {"id": None}, {"id": 7}], ids=["no mapping", "None as id", "number as id"]
)
def test_attributes_of_a_wrong_type_are_dead_letters_with_an_id_label_too(attributes: Any) -> None:
    """An id label does not hide what is wrong with a message's own attributes."""
    with LocalPubSub() as server, server.environment():
        server.create_topic(_TOPIC)
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            elements = pipeline | beam.Create([PubsubMessage(b"x", attributes)])
            sink = WriteToPubSubHedged(_TOPIC, with_attributes=True, id_label="id", dead_letter=True)
            failed = (elements | sink).failed
            assert_that(failed | beam.Map(lambda failure: failure.status), equal_to(["INVALID_ARGUMENT"]))
        assert server.ledger().requests == 0
