"""Publishers without Beam: threads share one, publish batch after batch, and wait for all at the end."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from google.cloud.pubsub_v1 import PublisherClient
from google.cloud.pubsub_v1.types import PublisherOptions

from beam_hedge import HedgingPublisher
from beam_hedge.batch import BatchBuilder
from beam_hedge.message import encode_data, encode_message
from beam_hedge.settings import DEFAULT_BATCH_SETTINGS, DEFAULT_FLOW_CONTROL
from benchmarks.server import TOPIC
from benchmarks.usage import Published, measured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.shapes import Shape

    # Publishes one batch; returns the futures to wait for.
    Publish = Callable[[], list[Any]]


@contextlib.contextmanager
def _client(shape: Shape) -> Iterator[Publish]:
    # Its own default lets memory grow without bound; ours waits, and so both do here.
    client = PublisherClient(publisher_options=PublisherOptions(flow_control=DEFAULT_FLOW_CONTROL))
    data, attributes, batch = shape.data, shape.all_attributes, range(shape.batch)
    yield lambda: [client.publish(TOPIC, data, **attributes) for _ in batch]
    client.stop()
    client.transport.close()


@contextlib.contextmanager
def _publisher(shape: Shape) -> Iterator[Publish]:
    messages = [shape.message if shape.attributes else shape.data] * shape.batch
    with HedgingPublisher(TOPIC) as publisher:
        yield lambda: [publisher.publish(messages)]


@contextlib.contextmanager
def _batches(shape: Shape) -> Iterator[Publish]:
    """Fills batches as the sink does."""
    message, data, labels = shape.message, shape.data, {"id": shape.id} if shape.has_id else None
    with HedgingPublisher(TOPIC) as publisher:

        def publish() -> list[Any]:
            futures: list[Any] = []
            builder = BatchBuilder(
                TOPIC, DEFAULT_BATCH_SETTINGS, lambda batch, _: futures.append(publisher.publish_batch(batch))
            )
            for _ in range(shape.batch):
                builder.add(encode_message(message, labels) if shape.attributes else encode_data(data))
            builder.flush()
            return futures

        yield publish


_WAYS = {"client": _client, "publish": _publisher, "publish_batch": _batches}


def publish_with(way: str, shape: Shape, threads: int, seconds: float) -> Published:
    """Publishes for some time.

    Args:
        way: "client" for google-cloud-pubsub's `PublisherClient`, "publish" or "publish_batch" for the
            methods of `HedgingPublisher`.
        shape: What to publish.
        threads: How many publish at once.
        seconds: For how long; waiting for the last outcomes comes on top, and counts.
    """
    begin = threading.Barrier(threads + 1)
    with _WAYS[way](shape) as publish, ThreadPoolExecutor(threads) as pool:
        for future in publish():
            future.result()

        def work() -> int:
            futures: list[Any] = []
            batches = 0
            begin.wait()
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                futures += publish()
                batches += 1
            for future in futures:
                future.result()
            return batches

        working = [pool.submit(work) for _ in range(threads)]
        with measured() as usage:
            begin.wait()
            batches = sum(each.result() for each in working)
    return Published(batches * shape.batch, usage.cpu, usage.wall)
