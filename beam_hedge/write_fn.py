"""The sink's DoFn: leases the worker's publisher, fills batches, awaits them all in `finish_bundle`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.utils.windowed_value import WindowedValue  # noqa: TC002 - Beam reads the annotations

from beam_hedge import lease
from beam_hedge.batch import BatchBuilder
from beam_hedge.bundle import Bundle
from beam_hedge.errors import InvalidMessageError
from beam_hedge.message import encode_data, encode_message
from beam_hedge.metrics import SinkMetrics

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Iterable

    from google.cloud.pubsub_v1.types import BatchSettings

    from beam_hedge.batch import Batch
    from beam_hedge.lease import Lease, PublisherConfig
    from beam_hedge.outcome import PublishOutcome

# Made in `setup` and `start_bundle`, never pickled.
_LIVE = frozenset({"_lease", "_bundle", "_builder", "_metrics", "_last", "_sent"})


class WriteFn(beam.DoFn):
    """Publishes a bundle's elements and finishes the bundle when the service has all of them.

    The lease, the batches and the futures are made in `setup` and `start_bundle`; what is pickled is
    configuration only.

    Args:
        config: What publisher to lease.
        batch_settings: The most messages, bytes and seconds of a batch.
        with_attributes: Whether elements are Beam's `PubsubMessage`, or bytes and text.
    """

    _lease: Lease
    _bundle: Bundle
    _builder: BatchBuilder
    _metrics: SinkMetrics

    def __init__(
        self, config: PublisherConfig, batch_settings: BatchSettings, *, with_attributes: bool
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Beam's has no annotations
        self._config = config
        self._batch_settings = batch_settings
        self._encode: Callable[[Any], bytes] = _encode_pubsub_message if with_attributes else encode_data

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _LIVE}

    def setup(self) -> None:
        self._lease = lease.acquire(self._config)
        self._metrics = SinkMetrics()

    def start_bundle(self) -> None:
        self._abandon()
        self._bundle = Bundle(self._lease.publisher, self._metrics)
        self._builder = BatchBuilder(self._config.topic, self._batch_settings, self._publish)

    def process(self, element: bytes | str | PubsubMessage) -> None:
        try:
            self._builder.add(self._encode(element))
        except BaseException:
            self._abandon()
            raise

    def finish_bundle(self) -> Iterable[WindowedValue] | None:
        self._guard(self._builder.flush)
        self._guard(self._bundle.finish)
        return None

    def teardown(self) -> None:
        self._abandon()
        held: Lease | None = self.__dict__.pop("_lease", None)
        if held is not None:
            held.release()

    def _publish(self, batch: Batch) -> concurrent.futures.Future[PublishOutcome]:
        return self._bundle.publish(batch)

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


class WriteFnWithOutcomes(WriteFn):
    """The same, and outputs the `PublishOutcome` of each batch.

    An outcome has the window and the timestamp of its batch's last element, and a batch ends where the elements'
    windows change, so that an outcome belongs to one window.
    """

    _last: WindowedValue | None
    _sent: list[tuple[WindowedValue, concurrent.futures.Future[PublishOutcome]]]

    def start_bundle(self) -> None:
        super().start_bundle()
        self._last = None
        self._sent = []

    def process(
        self,
        element: bytes | str | PubsubMessage,
        windowed_value: WindowedValue = beam.DoFn.WindowedValueParam,  # type: ignore[assignment]  # Beam fills it in
    ) -> None:
        if self._last is not None and windowed_value.windows != self._last.windows:
            self._guard(self._builder.flush)
        self._last = windowed_value.with_value(None)
        super().process(element)

    def finish_bundle(self) -> Iterable[WindowedValue]:
        super().finish_bundle()
        sent, self._sent = self._sent, []
        return [last.with_value(future.result()) for last, future in sent]

    def _publish(self, batch: Batch) -> concurrent.futures.Future[PublishOutcome]:
        future = super()._publish(batch)
        assert self._last is not None, "a batch has elements"
        self._sent.append((self._last, future))
        return future


def _encode_pubsub_message(element: PubsubMessage) -> bytes:
    if not isinstance(element, PubsubMessage):
        raise InvalidMessageError(
            f"with_attributes=True takes apache_beam.io.gcp.pubsub.PubsubMessage, got {type(element).__name__}"
        )
    return encode_message(element)
