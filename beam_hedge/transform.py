"""`WriteToPubSubHedged`: checks its arguments, and expands to the DoFn that publishes."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.internal import pickler
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.transforms.display import DisplayDataItem
from google.api_core import client_options as client_options_lib

from beam_hedge.errors import InvalidSettingError
from beam_hedge.lease import PublisherConfig
from beam_hedge.outcome import PublishOutcome
from beam_hedge.settings import (
    DEFAULT_BATCH_SETTINGS,
    DEFAULT_CONNECTIONS,
    DEFAULT_FLOW_CONTROL,
    HedgingSettings,
    RetrySettings,
    check_batch_settings,
    check_connections,
    check_delay_fits,
    check_flow_control,
    check_hedging_settings,
    check_retry_settings,
)
from beam_hedge.topics import parse_topic
from beam_hedge.write_fn import WriteFn, WriteFnWithOutcomes

if TYPE_CHECKING:
    from google.auth.credentials import Credentials
    from google.cloud.pubsub_v1.types import BatchSettings, PublishFlowControl

_ORDERING_WITH_HEDGING = (
    "False while hedging is on: copies of one batch can be stored out of order. Use settings=None and "
    "beam.io.WriteToPubSub for ordered publishing"
)
_ORDERING_WITHOUT_HEDGING = (
    "False: a bundle's batches are out at the same time and can be stored out of order. Use "
    "beam.io.WriteToPubSub for ordered publishing"
)


@dataclass(frozen=True)
class WriteResult:
    """What the sink gives to later steps.

    Attributes:
        outcomes: A `PublishOutcome` for each published batch, if `with_outcomes` was set.
    """

    outcomes: beam.PCollection[PublishOutcome] | None

    @property
    def published(self) -> beam.PCollection[PublishOutcome]:
        """The outcome of each published batch.

        Raises:
            ValueError: They were not asked for.
        """
        if self.outcomes is None:
            raise ValueError("published is there only with WriteToPubSubHedged(..., with_outcomes=True)")
        return self.outcomes


class WriteToPubSubHedged(beam.PTransform[Any, WriteResult]):
    """Publishes elements to a Pub/Sub topic, hedging batches that are late.

    A bundle's elements are grouped into batches. Each goes through the one publisher that all bundles of a
    worker process share; a batch that is late is sent once more on another connection, as far as the shared
    token bucket allows, and the first answer wins. A bundle is finished only when the service has
    acknowledged all of its batches, and fails if one cannot be published. Delivery is at least once: hedges
    and retries can store a message twice, with different message ids; nothing is lost.

    Args:
        topic: `projects/PROJECT/topics/TOPIC`.
        settings: When and how often to hedge. Default `HedgingSettings()`; `None` publishes through the same
            path without hedging.
        with_attributes: True: elements are `apache_beam.io.gcp.pubsub.PubsubMessage`. False, the default:
            bytes, or str, which is sent as UTF-8.
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
        with_outcomes: True: `published` of the result is a PCollection of the batches' `PublishOutcome`s. A
            batch then holds elements of one window only. Default False.

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
        topic: str,
        settings: HedgingSettings | None = HedgingSettings(),  # noqa: B008 - frozen
        *,
        with_attributes: bool = False,
        publish_with_ordering_key: bool = False,
        retry_settings: RetrySettings = RetrySettings(),  # noqa: B008 - frozen
        batch_settings: BatchSettings = DEFAULT_BATCH_SETTINGS,
        flow_control: PublishFlowControl = DEFAULT_FLOW_CONTROL,
        connections: int = DEFAULT_CONNECTIONS,
        client_options: client_options_lib.ClientOptions | dict[str, Any] | None = None,
        credentials: Credentials | None = None,
        with_outcomes: bool = False,
    ) -> None:
        super().__init__()
        parse_topic(topic)
        check_hedging_settings(settings)
        check_retry_settings(retry_settings)
        check_delay_fits(settings, retry_settings)
        _check_flag("with_attributes", with_attributes)
        _check_flag("with_outcomes", with_outcomes)
        _check_flag("publish_with_ordering_key", publish_with_ordering_key)
        if publish_with_ordering_key:
            allowed = _ORDERING_WITHOUT_HEDGING if settings is None else _ORDERING_WITH_HEDGING
            raise InvalidSettingError("publish_with_ordering_key", publish_with_ordering_key, allowed)
        options = _client_options(client_options)
        self._config = PublisherConfig(
            topic=topic,
            settings=settings,
            retry_settings=retry_settings,
            flow_control=check_flow_control(flow_control),
            connections=check_connections(connections),
            client_options=options,
            client_options_id=_fingerprint(options),
            credentials=credentials,
            credentials_id=_fingerprint(credentials),
        )
        self._batch_settings = check_batch_settings(batch_settings)
        self._with_attributes = with_attributes
        self._with_outcomes = with_outcomes

    def expand(self, elements: beam.PCollection[bytes | str | PubsubMessage]) -> WriteResult:
        """Adds the publishing step."""
        write_fn = (WriteFnWithOutcomes if self._with_outcomes else WriteFn)(
            self._config, self._batch_settings, with_attributes=self._with_attributes
        )
        element_type = PubsubMessage if self._with_attributes else bytes | str
        step = beam.ParDo(write_fn).with_input_types(element_type).with_output_types(PublishOutcome)
        outcomes = elements | "Publish" >> step
        return WriteResult(outcomes if self._with_outcomes else None)

    def display_data(self) -> dict[str, DisplayDataItem]:
        """Shows the settings in the runner's console."""
        config = self._config
        items: dict[str, Any] = {
            "topic": config.topic,
            "hedging": config.settings is not None,
            "with_attributes": self._with_attributes,
            "connections": config.connections,
        }
        for prefix, values in (
            ("", dataclasses.asdict(config.settings) if config.settings else {}),
            ("retry_", dataclasses.asdict(config.retry_settings)),
            ("batch_", self._batch_settings._asdict()),
            ("flow_control_", config.flow_control._asdict()),
        ):
            items.update({prefix + name: value for name, value in values.items()})
        return {
            name: DisplayDataItem(_plain(value), label=name.replace("_", " ")) for name, value in items.items()
        }


def _check_flag(field: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InvalidSettingError(field, value, "True or False")


def _client_options(
    options: client_options_lib.ClientOptions | dict[str, Any] | None,
) -> client_options_lib.ClientOptions | None:
    if options is None or isinstance(options, client_options_lib.ClientOptions):
        return options
    if not isinstance(options, dict):
        raise InvalidSettingError(
            "client_options", options, "a dict or google.api_core.client_options.ClientOptions"
        )
    try:
        return client_options_lib.from_dict(options)
    except ValueError as error:
        raise InvalidSettingError("client_options", options, f"known to google-api-core ({error})") from error


def _fingerprint(value: object) -> str | None:
    """Stands for a value whose unpickled copies are not equal to it; the value cannot be read from it."""
    return None if value is None else hashlib.sha256(pickler.dumps(value)).hexdigest()


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float) else str(value)
