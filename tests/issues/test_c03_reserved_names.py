"""C03. Attributes were passed as keyword arguments, so some names changed the call instead of the message.

One named `retry` or `timeout` hung the sink for five minutes, one named `topic` or `data` crashed it.
"""

from __future__ import annotations

import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage

from beam_hedge import RetrySettings, WriteToPubSubHedged
from tests.beam.pipelines import RUNNERS, run_pipeline
from tests.issues.inputs import NAMED_AS_ARGUMENTS
from tests.server.serving import TOPIC, UNHURRIED, serving

TIMEOUT = 40.0


@pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
@pytest.mark.parametrize(
    "labels", [{}, {"timestamp_attribute": "ts", "id_label": "id"}], ids=["plain", "labels"]
)
def test_all_arrive_as_attributes(runner: str, labels: dict[str, str]) -> None:
    """An attribute's name means nothing to the call: topic, deadline and ordering key are what they were."""
    with serving() as server:
        transform = WriteToPubSubHedged(
            TOPIC,
            UNHURRIED,
            with_attributes=True,
            retry_settings=RetrySettings(initial_rpc_timeout=TIMEOUT),
            **labels,  # type: ignore[arg-type]
        )
        run_pipeline([PubsubMessage(b"x", NAMED_AS_ARGUMENTS)], transform, RUNNERS[runner])
        [request] = server.requests
        [message] = server.messages(TOPIC)
    assert {**message.attributes, **NAMED_AS_ARGUMENTS} == message.attributes
    assert set(message.attributes) - set(NAMED_AS_ARGUMENTS) == set(labels.values())
    assert (message.data, message.ordering_key, request.topic) == (b"x", "", TOPIC)
    assert request.time_left is not None
    assert TIMEOUT - 10 < request.time_left < TIMEOUT + 1
