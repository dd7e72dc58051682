"""`WriteToPubSubHedged`: checks its arguments, and expands to the DoFn that publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.options.value_provider import ValueProvider

from beam_hedge.add_ids import AddIds
from beam_hedge.dead_letters import TAG, YAML_ROW, FailedMessage, to_error_record, to_yaml_row, yaml_output
from beam_hedge.errors import InvalidSettingError
from beam_hedge.labels import Labels
from beam_hedge.outcome import PublishOutcome
from beam_hedge.publisher_config import from_mapping, make_config, with_fingerprints
from beam_hedge.settings import (
    DEFAULT_BATCH_SETTINGS,
    DEFAULT_CONNECTIONS,
    DEFAULT_FLOW_CONTROL,
    HedgingSettings,
    RetrySettings,
    check_batch_settings,
    check_flag,
)
from beam_hedge.topics import parse_topic
from beam_hedge.tracking_write_fn import TrackingWriteFn
from beam_hedge.write_fn import WriteFn
from beam_hedge.write_result import WriteResult, own_step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from apache_beam.pvalue import PCollection
    from apache_beam.transforms.error_handling import ErrorHandler
    from google.api_core.client_options import ClientOptions
    from google.auth.credentials import Credentials
    from google.cloud.pubsub_v1.types import BatchSettings, PublishFlowControl
    from typing_extensions import Self

_ORDERING_WITH_HEDGING = (
    "False while hedging is on: copies of one batch can be stored out of order. Use beam.io.WriteToPubSub for "
    "ordered publishing"
)
_ORDERING_WITHOUT_HEDGING = (
    "False: a bundle's batches are out at the same time and can be stored out of order. Use "
    "beam.io.WriteToPubSub for ordered publishing"
)


class WriteToPubSubHedged(beam.PTransform[Any, WriteResult]):
    """Publishes elements to a Pub/Sub topic, hedging batches that are late.

    A bundle's elements are grouped into batches. Each goes through the one publisher that all bundles of a
    worker process share; a batch that is late is sent once more on another connection, as far as the shared
    token bucket allows, and the first answer wins. A bundle is finished only when the service has
    acknowledged all of its batches, and fails if one cannot be published. Delivery is at least once: hedges
    and retries can store a message twice, with different message ids; nothing is lost.

    Args:
        topic: `projects/PROJECT/topics/TOPIC`; or a `ValueProvider` of it; or a function that gives an
            element's topic: batches then form per topic, and all topics share the publisher and its budget.
        settings: When and how often to hedge. Default `HedgingSettings()`; `None` publishes through the same
            path without hedging.
        with_attributes: True: elements are `apache_beam.io.gcp.pubsub.PubsubMessage`. False, the default:
            bytes, or str, which is sent as UTF-8.
        id_label: Name of an attribute that holds an id, equal on all copies of a message, whether hedging,
            retries or a runner that tries a bundle again made them; a message that has one keeps it. Costs a
            reshuffle. A subscriber can remove duplicates by it, as `beam.io.ReadFromPubSub(id_label=...)`
            does on Dataflow.
        timestamp_attribute: Name of an attribute that holds the element's event time in milliseconds since
            the epoch; the time of publishing for an element that has none.
        publish_with_ordering_key: Refused if True; here because `beam.io.WriteToPubSub` has it.
        retry_settings: Deadlines and retries of each batch. Default `RetrySettings()`.
        batch_settings: google-cloud-pubsub's type: at most 1,000 messages and 10,000,000 bytes of request.
            Default: 100 messages, 1,000,000 bytes, 0.01 s. A message over `max_bytes` goes alone. A batch's
            age is looked at when an element arrives.
        flow_control: google-cloud-pubsub's type. Default: `process` waits while 10,000 messages or
            100,000,000 bytes of this worker process are out, which holds back the runner.
        connections: TCP connections of each worker process, 1 to 8. Default 2.
        client_options: As for google-cloud-pubsub's `PublisherClient`, such as `{"api_endpoint": ...}`.
        credentials: Default: the worker's application default credentials.
        dead_letter: True: messages that our checks or the service refuse are in the result's `failed`, a
            PCollection of `FailedMessage`, and the others are published; a batch of which the service refuses
            every part fails its bundle. False, the default: they all fail their bundle.
        error_handling: The same as Beam YAML asks for it, `{"output": name}`: the result is then a dict of
            the PCollections `good` and `name`.
        with_outcomes: True: `published` of the result is a PCollection of a `PublishOutcome` for each batch. A
            batch then holds elements of one window only. Default False.
        enable_open_telemetry_tracing: Whether each batch is an OpenTelemetry span, with its original and its
            hedges as spans below it. Default False, as in google-cloud-pubsub.

    Raises:
        InvalidSettingError: An argument is outside its limits. Raised when the transform is built.

    Example:
        >>> import apache_beam as beam
        >>> from beam_hedge.testing import LocalPubSub
        >>> topic = "projects/demo-project/topics/orders"
        >>> with LocalPubSub() as server, server.environment():
        ...     server.create_topic(topic)
        ...     with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...         orders = pipeline | beam.Create([b"one", b"two"])
        ...         result = orders | WriteToPubSubHedged(topic, HedgingSettings(hedge_delay=0.5))
        ...     len(server.messages(topic))
        2

    The arguments that `beam.io.WriteToPubSub` has, too, mean the same here. See
    https://cloud.google.com/pubsub/docs/publisher for what publishing guarantees.
    """

    def __init__(
        self,
        topic: str | ValueProvider | Callable[[Any], str],
        settings: HedgingSettings | Mapping[str, Any] | None = HedgingSettings(),  # noqa: B008 - frozen
        *,
        with_attributes: bool = False,
        id_label: str | None = None,
        timestamp_attribute: str | None = None,
        publish_with_ordering_key: bool = False,
        retry_settings: RetrySettings | Mapping[str, Any] = RetrySettings(),  # noqa: B008 - frozen
        batch_settings: BatchSettings | Mapping[str, Any] = DEFAULT_BATCH_SETTINGS,
        flow_control: PublishFlowControl | Mapping[str, Any] = DEFAULT_FLOW_CONTROL,
        connections: int = DEFAULT_CONNECTIONS,
        client_options: ClientOptions | dict[str, Any] | None = None,
        credentials: Credentials | None = None,
        dead_letter: bool = False,
        error_handling: Mapping[str, Any] | None = None,
        with_outcomes: bool = False,
        enable_open_telemetry_tracing: bool = False,
    ) -> None:
        super().__init__()
        self._topic = topic
        config = make_config(
            topic=_static_topic(topic),
            settings=settings,
            retry_settings=retry_settings,
            flow_control=flow_control,
            connections=connections,
            client_options=client_options,
            credentials=credentials,
            tracing=enable_open_telemetry_tracing,
        )
        self._config = with_fingerprints(config)
        self._batch_settings = check_batch_settings(
            from_mapping("batch_settings", DEFAULT_BATCH_SETTINGS, batch_settings)
        )
        self._with_attributes = check_flag("with_attributes", with_attributes)
        self._with_outcomes = check_flag("with_outcomes", with_outcomes)
        self._labels = Labels(id_label, timestamp_attribute)
        self._dead_letter = check_flag("dead_letter", dead_letter)
        self._yaml_output = yaml_output(error_handling)
        self._error_handler: ErrorHandler | None = None
        if check_flag("publish_with_ordering_key", publish_with_ordering_key):
            allowed = _ORDERING_WITHOUT_HEDGING if self._config.settings is None else _ORDERING_WITH_HEDGING
            raise InvalidSettingError("publish_with_ordering_key", publish_with_ordering_key, allowed)
        self._check_one_way()

    def with_error_handler(self, error_handler: ErrorHandler | None) -> Self:
        """Gives refused messages to a Beam error handler, instead of failing their bundle.

        Args:
            error_handler: Gets records `(element, (error type, text, [lines]))`. `None`: refused messages
                fail the bundle.

        Returns:
            This transform.
        """
        self._error_handler = error_handler
        self._check_one_way()
        return self

    def expand(self, elements: PCollection[Any]) -> Any:
        """Adds the publishing step, and before it the one that gives ids, if there is an id label."""
        element_type: Any = PubsubMessage if self._with_attributes else bytes | str
        if self._labels.id_label is not None:
            elements = elements | AddIds(element_type)
            element_type = tuple[str, element_type]
        publish = beam.ParDo(self._write_fn()).with_input_types(element_type).with_output_types(PublishOutcome)
        outputs = elements | "Publish" >> publish.with_outputs(TAG, main="published")
        published = own_step(outputs["published"], "Published", PublishOutcome)
        failed = own_step(outputs[TAG], "Failed", FailedMessage)
        if self._yaml_output is not None:
            return {
                "good": published,
                self._yaml_output: failed | "ToRows" >> beam.Map(to_yaml_row).with_output_types(YAML_ROW),
            }
        if self._error_handler is not None:
            self._error_handler.add_error_pcollection(failed | "ToRecords" >> beam.Map(to_error_record))
        return WriteResult(published if self._with_outcomes else None, failed if self._dead_letter else None)

    def display_data(self) -> dict[str, Any]:
        """Shows the settings in the runner's console."""
        return self._write_fn().display_data()

    @property
    def _refusals_are_outputs(self) -> bool:
        return self._dead_letter or self._yaml_output is not None or self._error_handler is not None

    def _write_fn(self) -> WriteFn:
        topic = self._topic if isinstance(self._topic, ValueProvider) and self._config.topic is None else None
        topic_of = self._topic if callable(self._topic) else None
        same: dict[str, Any] = {
            "with_attributes": self._with_attributes,
            "labels": self._labels,
            "topic": topic,
        }
        wants_times = self._labels.timestamp_attribute is not None
        if not (wants_times or topic_of or self._refusals_are_outputs or self._with_outcomes):
            return WriteFn(self._config, self._batch_settings, **same)
        return TrackingWriteFn(
            self._config,
            self._batch_settings,
            **same,
            topic_of=topic_of,
            dead_letter=self._refusals_are_outputs,
            with_outcomes=self._with_outcomes,
        )

    def _check_one_way(self) -> None:
        ways = [self._dead_letter, self._yaml_output is not None, self._error_handler is not None]
        if sum(ways) > 1:
            raise InvalidSettingError(
                "dead_letter", "several ways", "the only way, without error_handling and with_error_handler"
            )


def _static_topic(topic: str | ValueProvider | Callable[[Any], str]) -> str | None:
    """Returns the topic, checked, if it is known by now."""
    if isinstance(topic, ValueProvider):
        if not topic.is_accessible():
            return None
        topic = topic.get()
        if topic is None:
            # Beam calls an unset one accessible once a pipeline has run in this process.
            return None
    elif callable(topic):
        return None
    parse_topic(topic)
    return str(topic)
