"""LocalPubSub under Beam's own source and sink."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from tests.server.conftest import TOPIC, ids, request

if TYPE_CHECKING:
    from collections.abc import Callable

    from apache_beam.runners.runner import PipelineResult

    from beam_hedge.testing import LocalPubSub
    from tests.server.conftest import RawClient

    Serve = Callable[..., tuple[LocalPubSub, RawClient]]

SOURCE = "projects/p-test/topics/source"
NAME = "projects/p-test/subscriptions/source-sub"
PATIENCE = 60


def relay(**source: str) -> PipelineResult:
    """Starts a pipeline that copies messages with their attributes from a source to `TOPIC`."""
    options = PipelineOptions(["--runner=BundleBasedDirectRunner", "--streaming"])
    pipeline = beam.Pipeline(options=options)
    (
        pipeline
        | beam.io.ReadFromPubSub(with_attributes=True, **source)
        | beam.io.WriteToPubSub(TOPIC, with_attributes=True)
    )
    return pipeline.run()


def contents(server: LocalPubSub) -> list[tuple[bytes, str]]:
    """Returns data and attribute of all messages that were copied, sorted."""
    return sorted((message.data, message.attributes["n"]) for message in server.messages(TOPIC))


def test_beam_reads_a_subscription(serve: Serve) -> None:
    """Users can run a streaming pipeline from Pub/Sub to Pub/Sub, and every message passes."""
    server, client = serve()
    server.create_topic(SOURCE)
    server.create_subscription(NAME, SOURCE)
    with server.environment():
        for number in range(25):
            ids(client.send(request(b"%d" % number, topic=SOURCE, attributes={"n": str(number)})))
        result = relay(subscription=NAME)
        server.wait_for(lambda ledger: ledger.messages >= 25, topic=TOPIC, timeout=PATIENCE)
        server.wait_until_acknowledged(NAME, timeout=PATIENCE)
        result.cancel()
    assert contents(server) == sorted((b"%d" % number, str(number)) for number in range(25))


def test_beam_reads_a_topic(serve: Serve) -> None:
    """Users can name a topic as the source: Beam makes a subscription of its own, and deletes it."""
    server, client = serve()
    server.create_topic(SOURCE)
    with server.environment():
        result = relay(topic=SOURCE)
        while not server.subscriptions(SOURCE):
            # Nothing tells when Beam has subscribed; what is published before that does not reach it.
            ids(client.send(request(b"before", topic=SOURCE, attributes={"n": "0"})))
        ids(client.send(request(b"after", topic=SOURCE, attributes={"n": "1"})))
        server.wait_for(lambda _: (b"after", "1") in contents(server), topic=TOPIC, timeout=PATIENCE)
        result.cancel()
        # Beam deletes the subscription when the pipeline is collected.
        del result
        gc.collect()
    assert server.subscriptions(SOURCE) == []
