"""Beam YAML: the example as it is shipped, and what its provider tells Beam about the transform."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.yaml import main
from apache_beam.yaml.json_utils import beam_schema_to_json_schema
from apache_beam.yaml.yaml_provider import load_providers

from beam_hedge import WriteToPubSubHedged
from beam_hedge.yaml_io import WriteRowsToPubSubHedged
from tests.server.serving import TOPIC, serving

if TYPE_CHECKING:
    from apache_beam.portability.api import schema_pb2

EXAMPLE = Path(__file__).parents[2] / "examples" / "yaml"


def arguments(refused: Path, runner: str) -> list[str]:
    """Returns what follows `python -m apache_beam.yaml.main` to run the example."""
    variables = json.dumps({"topic": TOPIC, "refused": str(refused)})
    return [
        f"--yaml_pipeline_file={EXAMPLE / 'pipeline.yaml'}",
        f"--jinja_variables={variables}",
        f"--runner={runner}",
    ]


@pytest.mark.parametrize("runner", ["FnApiRunner", "BundleBasedDirectRunner"])
def test_the_example_publishes_and_keeps_what_is_refused(runner: str, tmp_path: Path) -> None:
    """The pipeline file that users start from runs as it is, with only a topic and a path filled in."""
    with serving() as server:
        main.run(arguments(tmp_path / "refused", runner))
        messages = server.messages(TOPIC)
    assert sorted((message.data, message.attributes["customer"]) for message in messages) == [
        (b'{"cups": 1, "item": "coffee"}', "c-2"),
        (b'{"cups": 2, "item": "tea"}', "c-1"),
    ]
    assert len({message.attributes["order_id"] for message in messages}) == 2
    assert all(int(message.attributes["ordered_at"]) > 0 for message in messages)
    [refused] = tmp_path.glob("refused*")
    assert refused.read_text() == "water: attribute 'customer' must have a str value, got NoneType\n"


def test_the_example_hedges_as_its_nested_settings_say(tmp_path: Path) -> None:
    """Settings of the YAML file reach the sink, as the runner's console shows."""
    options, build, _ = main.build_pipeline_components_from_argv(arguments(tmp_path / "x", "FnApiRunner"))
    pipeline = beam.Pipeline(options=options)
    build(pipeline)
    transforms = pipeline.to_runner_api().components.transforms.values()
    shown = [
        beam_runner_api_pb2.LabelledPayload.FromString(item.payload)
        for each in transforms
        for item in each.display_data
    ]
    values = {item.key: item.double_value or item.int_value for item in shown}
    assert (values["hedge_delay"], values["max_tokens"], values["refill_ratio"]) == (0.5, 100, 0.05)


def test_what_is_left_out_is_as_in_python_and_null_settings_switch_hedging_off() -> None:
    """A YAML pipeline has the documented defaults, and can be compared with one that does not hedge."""
    left_out, python = WriteRowsToPubSubHedged(TOPIC, "RAW")._sink, WriteToPubSubHedged(TOPIC)
    assert left_out._config == python._config
    assert left_out._batch_settings == python._batch_settings
    assert WriteRowsToPubSubHedged(TOPIC, "RAW", settings=None)._sink._config.settings is None
    part = WriteRowsToPubSubHedged(TOPIC, "RAW", flow_control={"message_limit": 7})._sink._config.flow_control
    assert part == python._config.flow_control._replace(message_limit=7)


def schema() -> schema_pb2.Schema:
    """Returns the transform's configuration as Beam YAML sees it through the provider file."""
    [provider] = load_providers(str(EXAMPLE / "providers.yaml"))
    found: schema_pb2.Schema = provider.config_schema("WriteToPubSubHedged")
    return found


def test_every_argument_has_a_type_and_a_description_in_yaml() -> None:
    """Beam YAML's tools show each argument with what it means, and know what may stand there."""
    fields = schema().fields
    assert [field.name for field in fields] == list(inspect.signature(WriteRowsToPubSubHedged).parameters)
    assert [field.name for field in fields if not field.description] == []
    types: dict[str, Any] = beam_schema_to_json_schema(schema())["properties"]
    assert {name: kind.get("type") for name, kind in types.items()} == {
        **dict.fromkeys(("topic", "format", "attributes_map", "id_attribute", "timestamp_attribute"), "string"),
        **dict.fromkeys(("settings", "retry_settings", "batch_settings", "flow_control"), "object"),
        "attributes": "array",
        "connections": "integer",
        "enable_open_telemetry_tracing": "boolean",
        "client_options": "object",
        "error_handling": "object",
    }
