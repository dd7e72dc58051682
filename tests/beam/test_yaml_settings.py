"""Beam YAML: a mistake in the file stops the launch, and the error names the field and the line."""

from __future__ import annotations

import json
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.yaml.yaml_transform import expand_pipeline

from beam_hedge import InvalidSettingError
from beam_hedge.yaml_io import WriteRowsToPubSubHedged
from tests.beam.test_yaml import EXAMPLE
from tests.server.serving import TOPIC

SOURCE = {"type": "Create", "config": {"elements": [{"item": "tea", "price": 3, "raw": "\u00e9"}]}}
RAW: dict[str, Any] = {"topic": TOPIC, "format": "RAW"}
JSON: dict[str, Any] = {"topic": TOPIC, "format": "JSON"}


def build(config: dict[str, Any], source: dict[str, Any] = SOURCE) -> None:
    """Builds, and does not run, a pipeline that publishes rows."""
    transforms = [
        {**source, "name": "Rows"},
        {"type": "WriteToPubSubHedged", "name": "Publish", "input": "Rows", "config": config},
    ]
    if "error_handling" in config:
        name = config["error_handling"]["output"]
        transforms.append({"type": "LogForTesting", "input": f"Publish.{name}"})
    spec = {"pipeline": {"transforms": transforms}, "providers": [{"include": "providers.yaml"}]}
    # JSON is YAML.
    expand_pipeline(beam.Pipeline(), json.dumps(spec, indent=1), pipeline_path=str(EXAMPLE / "pipeline.yaml"))


@pytest.mark.parametrize(
    "config",
    [
        JSON,
        {**JSON, "attributes": ["item"], "error_handling": {"output": "failed"}},
        {**JSON, "settings": None, "retry_settings": {"total_timeout": 30}, "connections": 4},
        {**JSON, "flow_control": {"message_limit": 10, "byte_limit": 1000, "limit_exceeded_behavior": "block"}},
        {**JSON, "batch_settings": {"max_messages": 1000}, "client_options": {"api_endpoint": "localhost:1"}},
    ],
    ids=["plain", "attributes", "settings", "flow control", "batches"],
)
def test_what_is_documented_is_accepted(config: dict[str, Any]) -> None:
    """Every argument can be written in a YAML file."""
    build(config)


def test_a_relay_keeps_payload_and_attributes() -> None:
    """What Beam YAML's source gives can be published again as it is: bytes, and a map of attributes."""
    subscription = "projects/p-test/subscriptions/in"
    source = {
        "type": "ReadFromPubSub",
        "config": {"subscription": subscription, "format": "RAW", "attributes_map": "all"},
    }
    build({**RAW, "attributes_map": "all"}, source)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({**JSON, "settings": {"hedge_delay": 0.01}}, "hedge_delay must be seconds from 0.1 to 10"),
    ({**JSON, "settings": {"hedge_delay": "500ms"}}, "hedge_delay must be .* got '500ms'"),
    (
        {**JSON, "settings": {"hedge_dely": 1}},
        "settings.hedge_dely must be left out: settings has hedge_delay, ",
    ),
    ({**JSON, "settings": {"max_tokens": 2.5}}, "max_tokens must be a whole number"),
    ({**JSON, "settings": "fast"}, "settings must be .* got 'fast'"),
    ({**JSON, "retry_settings": {"total_timeout": 0.5}}, "hedge_delay must be strictly shorter"),
    ({**JSON, "batch_settings": {"max_messages": 1001}}, "batch_settings.max_messages must be"),
    ({**JSON, "flow_control": {"byte_limit": 0}}, "flow_control.byte_limit must be"),
    ({**JSON, "connections": 9}, "connections must be a whole number from 1 to 8, got 9"),
    ({**JSON, "client_options": {"endpoint": "x"}}, "client_options must be"),
    ({**JSON, "topic": "orders"}, "topic must be"),
    ({**JSON, "id_attribute": "goog"}, "id_attribute must be the name of an attribute"),
    (
        {**JSON, "id_attribute": "a", "timestamp_attribute": "a"},
        "timestamp_attribute must be .* than id_attribute",
    ),
    ({**JSON, "error_handling": {"output": "good"}}, "error_handling must be"),
    ({**JSON, "error_handling": {"output": "failed", "threshold": 1}}, "error_handling must be"),
    ({**JSON, "format": "AVRO"}, "format must be RAW or JSON, got 'AVRO'"),
    ({**JSON, "format": 3}, "format must be RAW or JSON, got 3"),
    (RAW, r"format must be JSON, unless one field.* the rows have item \(str\), price \(int64\)"),
    ({**RAW, "attributes": ["item", "raw"]}, "format must be JSON, unless one field"),
    ({**JSON, "attributes": ["absent"]}, "attributes must be a field of type string; .* got 'absent'"),
    ({**JSON, "attributes": ["price"]}, "attributes must be a field of type string; .* got 'price'"),
    ({**JSON, "attributes_map": "absent"}, "attributes_map must be a field of type map .* got 'absent'"),
    ({**JSON, "attributes_map": "item"}, "attributes_map must be a field of type map .* got 'item'"),
    ({**JSON, "attributes": 3}, "attributes must be names of fields, got 3"),
    ({**JSON, "attributes": ["item", 3]}, "attributes must be names of fields, got .*item"),
    ({**JSON, "attributes_map": {"item": "x"}}, "attributes_map must be names of fields, got .*item"),
    ({**JSON, "client_options": 3}, "client_options must be"),
    ({**JSON, "retry_settings": None}, "retry_settings must be"),
    ({**JSON, "enable_open_telemetry_tracing": "yes"}, "enable_open_telemetry_tracing must be True or False"),
    ({"topic": TOPIC}, "missing 1 required argument: 'format'"),
    ({**JSON, "hedge_delay": 1}, "unexpected argument 'hedge_delay'"),
]


@pytest.mark.parametrize(("config", "text"), REFUSED, ids=lambda value: str(value)[:60])
def test_a_mistake_is_named_with_its_line(config: dict[str, Any], text: str) -> None:
    """Whoever writes the file learns which field of which transform is wrong, and what is allowed there."""
    with pytest.raises(ValueError, match=text) as caught:
        build(config)
    assert '"Publish" at line ' in str(caught.value)


def test_rows_with_bytes_have_no_json_form() -> None:
    """A payload of bytes, as Beam's source gives it, is refused when the pipeline is built, not row by row."""
    rows = beam.Pipeline() | beam.Create([beam.Row(payload=b"x")])
    with pytest.raises(InvalidSettingError, match="format must be RAW if a field holds bytes"):
        _ = rows | WriteRowsToPubSubHedged(TOPIC, "JSON")


def test_elements_that_are_no_rows_are_refused() -> None:
    """Bytes or text without a schema are refused when the pipeline is built, with what is missing."""
    elements = beam.Pipeline() | beam.Create([b"x"])
    with pytest.raises(TypeError, match="schema"):
        _ = elements | WriteRowsToPubSubHedged(TOPIC, "RAW")
