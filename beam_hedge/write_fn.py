"""The sink's DoFn: leases the worker's publisher, fills batches, awaits them all in `finish_bundle`."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage

from beam_hedge import lease
from beam_hedge.batch import BatchBuilder
from beam_hedge.bundle import Bundle
from beam_hedge.display import display_items
from beam_hedge.errors import InvalidMessageError
from beam_hedge.message import encode_data, encode_message
from beam_hedge.metrics import SinkMetrics
from beam_hedge.topics import parse_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from apache_beam.options.value_provider import ValueProvider
    from google.cloud.pubsub_v1.types import BatchSettings

    from beam_hedge.labels import Labels
    from beam_hedge.lease import Lease
    from beam_hedge.publisher_config import PublisherConfig

# Made in `setup` and `start_bundle`, never pickled.
_LIVE = frozenset({"_lease", "_bundle", "_builder", "_metrics", "_builders", "_outputs", "_windows"})


class WriteFn(beam.DoFn):
    """Publishes a bundle's elements and finishes the bundle when the service has all of them.

    The lease, the batches and the futures are made in `setup` and `start_bundle`; what is pickled is
    configuration only.

    Args:
        config: What publisher to lease.
        batch_settings: The most messages, bytes and seconds of a batch.
        with_attributes: Whether elements are Beam's `PubsubMessage`, or bytes and text.
        labels: Attributes that each message gets. With an id label, elements are pairs of id and element.
        topic: What gives the topic when the pipeline runs. Default: the configuration has it.
    """

    _lease: Lease
    _bundle: Bundle
    _builder: BatchBuilder
    _metrics: SinkMetrics
    _counts_by_topic = False

    def __init__(
        self,
        config: PublisherConfig,
        batch_settings: BatchSettings,
        *,
        with_attributes: bool,
        labels: Labels,
        topic: ValueProvider | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Beam's has no annotations
        self._config = config
        self._batch_settings = batch_settings
        self._with_attributes = with_attributes
        self._labels = labels
        self._encode: Callable[..., bytes] = encode_pubsub_message if with_attributes else encode_data
        self._encode_element: Callable[[Any], bytes] = (
            self._encode if labels.id_label is None else functools.partial(_encode_pair, self._encode, labels)
        )
        self._topic = topic

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _LIVE}

    def display_data(self) -> dict[str, Any]:
        """Shows the settings in the runner's console: Beam drops those of a composite transform on the way."""
        topic = self._config.topic or (str(self._topic) if self._topic is not None else None)
        return display_items(
            self._config,
            self._batch_settings,
            topic=topic,
            with_attributes=self._with_attributes,
            id_label=self._labels.id_label,
            timestamp_attribute=self._labels.timestamp_attribute,
        )

    def setup(self) -> None:
        if self._topic is not None:
            topic = self._topic.get()
            parse_topic(topic)
            self._config = dataclasses.replace(self._config, topic=topic)
        self._lease = lease.acquire(self._config)
        self._metrics = SinkMetrics(by_topic=self._counts_by_topic)

    def start_bundle(self) -> None:
        self._abandon()
        self._bundle = self._new_bundle()
        if self._config.topic is not None:
            self._builder = self._new_builder(self._config.topic)

    def process(self, element: bytes | str | PubsubMessage) -> Any:
        try:
            self._builder.add(self._encode_element(element))
        except BaseException:
            self._abandon()
            raise

    def finish_bundle(self) -> Iterable[Any] | None:
        self._bundle.ends()
        self._guard(self._flush)
        self._guard(self._bundle.finish)
        return None

    def teardown(self) -> None:
        self._abandon()
        held: Lease | None = self.__dict__.pop("_lease", None)
        if held is not None:
            held.release()

    def _new_bundle(self) -> Bundle:
        return Bundle(self._lease.publisher, self._metrics)

    def _new_builder(self, topic: str) -> BatchBuilder:
        self._metrics.add_topic(topic)
        return BatchBuilder(topic, self._batch_settings, self._bundle.publish)

    def _flush(self) -> None:
        self._builder.flush()

    def _guard(self, step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        """Cancels what the last bundle has out, if anything: one that has failed is tried again as a whole."""
        bundle: Bundle | None = self.__dict__.pop("_bundle", None)
        if bundle is not None:
            bundle.cancel()


def _encode_pair(encode: Callable[..., bytes], labels: Labels, pair: tuple[str, Any]) -> bytes:
    message_id, element = pair
    return encode(element, labels.of(getattr(element, "attributes", None), message_id))


def encode_pubsub_message(element: PubsubMessage, labels: Mapping[str, str] | None = None) -> bytes:
    """Encodes Beam's `PubsubMessage`, and nothing else."""
    if not isinstance(element, PubsubMessage):
        raise InvalidMessageError(
            f"with_attributes=True takes apache_beam.io.gcp.pubsub.PubsubMessage, got {type(element).__name__}"
        )
    return encode_message(element, labels)
