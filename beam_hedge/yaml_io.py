"""The sink as Beam YAML sees it: rows come in, and the rows that cannot be published go out.

Not imported by the package itself; `examples/yaml/providers.yaml` names it. Beam makes the transform's YAML
schema of the constructor's annotations, so they must exist at run time, and of its arguments' descriptions.
"""
# ruff: noqa: UP007, UP045 - Beam's schemas know Optional[X], and take X | None for anything at all

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Optional, Union

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.schemas import named_fields_from_element_type
from apache_beam.typehints.typehints import is_consistent_with

from beam_hedge.errors import InvalidMessageError, InvalidSettingError
from beam_hedge.transform import WriteToPubSubHedged

_FORMATS = ("RAW", "JSON")
# All fields have their defaults; null would switch hedging off.
_DEFAULTS: Mapping[str, Any] = MappingProxyType({})
_TEXT: Any = Optional[str]
_TEXTS: Any = Optional[Mapping[str, str]]
_PAYLOAD: Any = Union[bytes, str, None]
_FAILED = "failed"


class WriteRowsToPubSubHedged(beam.PTransform[Any, Any]):
    """Publishes rows to a Pub/Sub topic, hedging batches that are late.

    Takes the arguments of Beam YAML's `WriteToPubSub` for the formats RAW and JSON, and those of hedging.
    Delivery is at least once: a hedge or a retry can store a message twice, with different message ids.

    Args:
        topic: The topic, as "projects/PROJECT/topics/TOPIC".
        format: What a message's payload is. RAW: the one field that is not used for attributes, bytes or
            text. JSON: an object of all fields that are not used for attributes and are not null, with sorted
            keys.
        attributes: Names of fields of type string that become attributes.
        attributes_map: Name of a field, a map of strings to strings, whose entries become attributes.
        id_attribute: Name of an attribute that holds an id, equal on all copies of a message; a message that
            has one keeps it. Costs a reshuffle.
        timestamp_attribute: Name of an attribute that holds the row's event time in milliseconds since the
            epoch.
        settings: When and how often to hedge: hedge_delay (0.1 to 10 seconds, default 1), max_tokens (1 to
            250, default 50), refill_ratio (0.001 to 0.2, default 0.1), initial_tokens (0 to max_tokens,
            default 0). Null publishes without hedging.
        retry_settings: Deadlines and retries of each batch, in seconds: initial_rpc_timeout (default 60),
            total_timeout (default 600), initial_retry_delay (default 0.1), retry_delay_multiplier (default
            4), max_retry_delay (default 60).
        batch_settings: max_messages (1 to 1,000, default 100), max_bytes (1 to 10,000,000, default 1,000,000)
            and max_latency (seconds, default 0.01) of a batch.
        flow_control: message_limit and byte_limit of what a worker process may have out, and what happens
            beyond them, limit_exceeded_behavior (block, error or ignore). Default: waits at 10,000 messages
            or 100,000,000 bytes.
        connections: TCP connections of each worker process, 1 to 8. Default 2.
        client_options: Options of the Pub/Sub client, such as api_endpoint.
        error_handling: Where rows go that cannot be published because of what they hold, {output: NAME}.
            Default: they fail the pipeline.
        enable_open_telemetry_tracing: Whether each batch is an OpenTelemetry span, with its original and its
            hedges as spans below it. Default false.

    Raises:
        InvalidSettingError: An argument is outside its limits, or does not fit the rows.

    Example:
        >>> import apache_beam as beam
        >>> from beam_hedge.testing import LocalPubSub
        >>> topic = "projects/demo-project/topics/orders"
        >>> with LocalPubSub() as server, server.environment():
        ...     server.create_topic(topic)
        ...     with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...         rows = pipeline | beam.Create([beam.Row(id="7", item="tea")])
        ...         outputs = rows | WriteRowsToPubSubHedged(topic, "JSON", attributes=["id"])
        ...     server.messages(topic)[0].data
        b'{"item": "tea"}'
    """

    def __init__(
        self,
        topic: str,
        format: str,  # noqa: A002 - the name in Beam YAML
        *,
        attributes: Optional[Iterable[str]] = None,
        attributes_map: Optional[str] = None,
        id_attribute: Optional[str] = None,
        timestamp_attribute: Optional[str] = None,
        settings: Optional[Mapping[str, Any]] = _DEFAULTS,
        retry_settings: Mapping[str, Any] = _DEFAULTS,
        batch_settings: Mapping[str, Any] = _DEFAULTS,
        flow_control: Mapping[str, Any] = _DEFAULTS,
        connections: int = 2,
        client_options: Optional[Mapping[str, Any]] = None,
        error_handling: Optional[Mapping[str, str]] = None,
        enable_open_telemetry_tracing: bool = False,
    ) -> None:
        super().__init__()
        self._format = str(format).upper()
        if self._format not in _FORMATS:
            raise InvalidSettingError("format", format, " or ".join(_FORMATS))
        self._attributes = _names("attributes", [attributes] if isinstance(attributes, str) else attributes)
        self._attributes_map = attributes_map
        _names("attributes_map", None if attributes_map is None else [attributes_map])
        self._error_handling = error_handling
        try:
            self._sink = WriteToPubSubHedged(
                topic,
                settings,
                with_attributes=True,
                id_label=id_attribute,
                timestamp_attribute=timestamp_attribute,
                retry_settings=retry_settings,
                batch_settings=batch_settings,
                flow_control=flow_control,
                connections=connections,
                client_options=dict(client_options) if isinstance(client_options, Mapping) else client_options,
                error_handling=error_handling,
                enable_open_telemetry_tracing=enable_open_telemetry_tracing,
            )
        except InvalidSettingError as error:
            # The name that stands in the YAML file.
            field, allowed = (text.replace("id_label", "id_attribute") for text in (error.field, error.allowed))
            raise InvalidSettingError(field, error.value, allowed) from error

    def expand(self, rows: Any) -> Any:
        """Adds the step that makes messages of rows, and the sink."""
        row_type = rows.element_type
        to_messages = beam.ParDo(
            _ToMessages(
                json_format=self._format == "JSON",
                payload=self._payload_fields(dict(named_fields_from_element_type(row_type))),
                attributes=self._attributes,
                attributes_map=self._attributes_map,
                keep_rows=self._error_handling is not None,
            )
        )
        made = rows | "ToMessages" >> to_messages.with_output_types(PubsubMessage).with_outputs(
            _FAILED, main="messages"
        )
        outputs = made["messages"] | "Write" >> self._sink
        if self._error_handling is None:
            # Beam YAML takes no result object; a dict without outputs says that there is nothing to read.
            return {}
        name = self._error_handling["output"]
        error_type = RowTypeConstraint.from_fields([("element", row_type), ("msg", str), ("stack", str)])
        refused = outputs[name] | "ToRows" >> beam.Map(_to_error_row).with_output_types(error_type)
        made[_FAILED].element_type = error_type
        return {**outputs, name: (made[_FAILED], refused) | beam.Flatten()}

    def _payload_fields(self, types: dict[str, Any]) -> list[str]:
        """Returns the names of the fields that make the payload, if the rows fit the arguments."""
        has = ", ".join(f"{name} ({_named(kind)})" for name, kind in types.items())
        uses = [("attributes", name, _TEXT, "string") for name in self._attributes]
        if self._attributes_map is not None:
            uses.append(("attributes_map", self._attributes_map, _TEXTS, "map of strings to strings"))
        for argument, name, kind, described in uses:
            if name not in types or not is_consistent_with(types[name], kind):
                raise InvalidSettingError(argument, name, f"a field of type {described}; the rows have {has}")
        used = {name for _, name, _, _ in uses}
        payload = [name for name in types if name not in used]
        if self._format == "RAW" and not (
            len(payload) == 1 and is_consistent_with(types[payload[0]], _PAYLOAD)
        ):
            allowed = "JSON, unless one field, of bytes or text, is not used for attributes"
            raise InvalidSettingError("format", "RAW", f"{allowed}; the rows have {has}")
        if self._format == "JSON" and any(types[name] in (bytes, Optional[bytes]) for name in payload):
            raise InvalidSettingError("format", "JSON", f"RAW if a field holds bytes; the rows have {has}")
        return payload


class _ToMessages(beam.DoFn):
    """Makes a message of each row, or a row for the error output.

    What a message may hold is checked by the sink, which knows Pub/Sub's limits.
    """

    def __init__(
        self,
        *,
        json_format: bool,
        payload: Sequence[str],
        attributes: Sequence[str],
        attributes_map: Optional[str],
        keep_rows: bool,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Beam's has no annotations
        self._json_format = json_format
        self._payload = payload
        self._attributes = attributes
        self._attributes_map = attributes_map
        self._keep_rows = keep_rows

    def process(self, row: Any) -> Iterable[Any]:
        try:
            data = self._data(row)
        except (TypeError, ValueError) as error:
            reason = f"the row has no JSON form: {error}"
            if not self._keep_rows:
                raise InvalidMessageError(reason) from error
            yield beam.pvalue.TaggedOutput(_FAILED, beam.Row(element=row, msg=reason, stack="INVALID_ARGUMENT"))
            return
        attributes = dict(getattr(row, self._attributes_map) or {}) if self._attributes_map is not None else {}
        attributes.update((name, getattr(row, name)) for name in self._attributes)
        yield _RowMessage(data, attributes, row) if self._keep_rows else PubsubMessage(data, attributes)

    def _data(self, row: Any) -> Any:
        if self._json_format:
            fields = beam.Row(**{name: getattr(row, name) for name in self._payload})
            return json.dumps(_plain(fields), sort_keys=True, allow_nan=False).encode()
        value = getattr(row, self._payload[0])
        # Beam's message takes no None beside empty attributes; the sink says what is wrong with an empty one.
        return b"" if value is None else value


class _RowMessage(PubsubMessage):
    """A message that remembers its row, for the error output."""

    def __init__(self, data: Any, attributes: dict[str, str], row: Any) -> None:
        super().__init__(data, attributes)  # type: ignore[no-untyped-call]  # Beam's has no annotations
        self.row = row


def _names(argument: str, value: Any) -> list[str]:
    names = [] if value is None else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InvalidSettingError(argument, value, "names of fields")
    return list(names)


def _to_error_row(failed: Any) -> beam.Row:
    return beam.Row(element=failed.element.row, msg=failed.msg, stack=failed.stack)


def _plain(value: Any) -> Any:
    """Returns what `json` takes: rows as objects, without the fields that are null."""
    if hasattr(value, "_asdict"):
        return {name: _plain(field) for name, field in value._asdict().items() if field is not None}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value


def _named(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")
