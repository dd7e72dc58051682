"""The metadata files: what the launch page shows, and whether the pipelines agree."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud.dataflow_v1beta3 import TemplateMetadata
from google.protobuf import json_format

from templates.metadata import PARAMETERS, TEMPLATES

if TYPE_CHECKING:
    from templates.metadata import Template

EACH = pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.pipeline)
VALID = {
    "input": "gs://bucket/files",
    "input_subscription": "projects/p-test/subscriptions/orders",
    "topic": "projects/p-test/topics/orders",
}


def metadata(template: Template) -> dict[str, Any]:
    """Reads a template's metadata file."""
    found: dict[str, Any] = json.loads(template.path.read_text(encoding="utf-8"))
    return found


def options_of(template: Template, *arguments: str) -> dict[str, Any]:
    """Returns the values of a pipeline's own options after a command line."""
    return {
        name: value
        for options in template.options
        for name, value in options(list(arguments)).get_all_options(current_only=True).items()
    }


def test_every_pipeline_has_a_template() -> None:
    """Whatever can be run as a program can be launched, too."""
    folder = TEMPLATES[0].path.parents[2] / "pipelines"
    programs = {path.stem for path in folder.glob("*.py") if "__main__" in path.read_text(encoding="utf-8")}
    assert {template.pipeline for template in TEMPLATES} == programs


@EACH
def test_files_are_what_the_options_say(template: Template) -> None:
    """No option is added, renamed or given another default without the launch page knowing it.

    `python -m templates.metadata` writes the files again.
    """
    assert template.path.read_text(encoding="utf-8") == template.text()


@EACH
def test_dataflow_can_read_the_file(template: Template) -> None:
    """A template can be built: no field is misspelt, or of another type than Dataflow expects."""
    parsed = TemplateMetadata.pb(TemplateMetadata())
    json_format.ParseDict(metadata(template), parsed)
    assert [parameter.name for parameter in parsed.parameters] == [
        parameter["name"] for parameter in metadata(template)["parameters"]
    ]


def test_a_misspelt_field_is_found() -> None:
    """The check above refuses what Dataflow would ignore."""
    wrong = {**metadata(TEMPLATES[0]), "support_at_least_once": True}
    with pytest.raises(json_format.ParseError, match="support_at_least_once"):
        json_format.ParseDict(wrong, TemplateMetadata.pb(TemplateMetadata()))


@EACH
def test_every_option_is_a_parameter_with_its_default(template: Template) -> None:
    """All that the command line can do, a launch can; what the page shows as default is what happens."""
    parameters = {each["name"]: each for each in metadata(template)["parameters"]}
    defaults = options_of(template)
    assert set(parameters) == set(defaults)
    for name, default in defaults.items():
        shown = parameters[name].get("defaultValue")
        assert (shown is None) == (default is None)
        if shown is not None:
            assert options_of(template, f"--{name}={shown}")[name] == default


@EACH
def test_required_parameters_are_those_that_the_pipeline_requires(
    template: Template, capsys: pytest.CaptureFixture[str]
) -> None:
    """The launch page asks for what a launch would fail without, and for nothing else."""
    required = [each["name"] for each in metadata(template)["parameters"] if not each.get("isOptional")]
    assert required == [each["name"] for each in metadata(template)["parameters"]][: len(required)]
    run = import_module(f"pipelines.{template.pipeline}").run

    def complaint(*without: str) -> str:
        # One more setting is wrong, which the pipeline looks at next.
        given = [f"--{name}={VALID[name]}" for name in required if name not in without]
        with pytest.raises(SystemExit):
            run([*given, "--hedge_delay=1h"])
        return capsys.readouterr().err

    for name in required:
        assert f"--{name} is required" in complaint(name)
    assert "--hedge_delay: must be" in complaint()


def test_words_are_for_parameters_that_exist() -> None:
    """Nothing is left behind of an option that is gone."""
    assert set(PARAMETERS) == {name for template in TEMPLATES for name in options_of(template)}


@EACH
def test_words_are_short_and_different(template: Template) -> None:
    """Each parameter can be told from the others, and read at a glance."""
    parameters = metadata(template)["parameters"]
    labels = [each["label"] for each in parameters]
    assert len(set(labels)) == len(labels)
    for each in parameters:
        assert 5 <= len(each["label"]) <= 40, each["name"]
        assert 40 <= len(each["helpText"]) <= 250, each["name"]
        assert each["helpText"].endswith("."), each["name"]
        assert each["helpText"].isascii(), each["name"]


@EACH
def test_each_parameter_has_its_place(template: Template) -> None:
    """No parameter is shown outside a group, or depends on one that is not there or never has that value."""
    parameters = {each["name"]: each for each in metadata(template)["parameters"]}
    for each in parameters.values():
        # Dataflow looks at the group only where there is no parent.
        assert ("groupName" in each) != ("parentName" in each), each["name"]
        if "parentName" in each:
            parent = parameters[each["parentName"]]
            choices = [option["value"] for option in parent.get("enumOptions", [])]
            if parent["paramType"] == "BOOLEAN":
                choices = ["true", "false"]
            assert set(each.get("parentTriggerValues", [])) <= set(choices), each["name"]
        else:
            assert "parentTriggerValues" not in each, each["name"]


@EACH
def test_choices_are_values_that_the_pipeline_takes(template: Template) -> None:
    """Whatever can be chosen on the page can be launched, and the default is one of the choices."""
    for each in metadata(template)["parameters"]:
        assert ("enumOptions" in each) == (each["paramType"] == "ENUM")
        values = [option["value"] for option in each.get("enumOptions", [])]
        assert "defaultValue" not in each or not values or each["defaultValue"] in values
        for value in values:
            assert options_of(template, f"--{each['name']}={value}")[each["name"]] == value


def test_streaming_is_said_where_it_is_true() -> None:
    """Dataflow offers the streaming modes for the relay, and none for the pipeline that ends."""
    text, relay = (metadata(template) for template in TEMPLATES)
    assert (text["streaming"], relay["streaming"]) == (False, True)
    assert relay["supportsAtLeastOnce"] is True
    assert relay["supportsExactlyOnce"] is True
    assert relay["defaultStreamingMode"] == "EXACTLY_ONCE"
    assert not {"supportsAtLeastOnce", "supportsExactlyOnce", "defaultStreamingMode"} & set(text)
