"""The pipelines' command lines: what is accepted, and how it is understood."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from google.cloud.pubsub_v1.types import LimitExceededBehavior

from beam_hedge import HedgingSettings, RetrySettings, WriteToPubSubHedged
from pipelines.flags import add_flag
from pipelines.options import HedgingOptions
from pipelines.values import boolean
from tests.pipelines.flags import ALL_FLAGS, ALL_SETTINGS, LAUNCHABLE

if TYPE_CHECKING:
    from pathlib import Path

TEXT = LAUNCHABLE["text_to_pubsub"]


@pytest.mark.parametrize("name", LAUNCHABLE)
def test_defaults_are_those_of_the_sink(name: str) -> None:
    """Who gives no flag gets what the library's documentation says."""
    pipeline = LAUNCHABLE[name]
    expected = {flag: default for flag, (default, _, _) in pipeline.flags.items()}
    assert pipeline.parse() == {**expected, **pipeline.required}
    arguments = PipelineOptions([]).view_as(HedgingOptions).sink_arguments()
    assert arguments["settings"] == HedgingSettings()
    assert arguments["retry_settings"] == RetrySettings()


@pytest.mark.parametrize("name", LAUNCHABLE)
def test_every_flag_is_known_to_these_tests(name: str) -> None:
    """A flag that is added later gets a test of its own."""
    pipeline = LAUNCHABLE[name]
    assert set(pipeline.parse()) == set(pipeline.flags)
    assert set(pipeline.flags) == {
        flag for kind in pipeline.kinds for flag in kind([]).get_all_options(current_only=True)
    }


@pytest.mark.parametrize(("name", "flag"), ALL_FLAGS)
def test_each_flag_takes_a_value(name: str, flag: str) -> None:
    """Values are understood in both of the usual forms."""
    _, text, value = LAUNCHABLE[name].flags[flag]
    assert LAUNCHABLE[name].parse(f"--{flag}={text}")[flag] == value
    assert LAUNCHABLE[name].parse(f"--{flag}", text)[flag] == value


@pytest.mark.parametrize(("name", "flag"), ALL_FLAGS)
def test_values_survive_the_way_to_the_workers(name: str, flag: str) -> None:
    """Workers read options from JSON, whose numbers have fractions: no value stops them."""
    pipeline = LAUNCHABLE[name]
    given = {
        flag: value for flag, value in pipeline.parse(f"--{flag}={pipeline.flags[flag][1]}").items() if value
    }
    as_json = {flag: float(value) if type(value) is int else value for flag, value in given.items()}
    again = PipelineOptions.from_dictionary(as_json)
    views = [again.view_as(kind) for kind in pipeline.kinds]
    assert {flag: getattr(view, flag) for view in views for flag in given if flag in dir(view)} == given


@pytest.mark.parametrize(("name", "flag"), ALL_SETTINGS)
def test_each_setting_reaches_the_sink(
    name: str, flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No flag is accepted and then ignored."""
    pipeline = LAUNCHABLE[name]
    built: list[dict[str, Any]] = []

    class Recorder(WriteToPubSubHedged):
        def __init__(self, **arguments: Any) -> None:
            built.append(arguments)
            super().__init__(**arguments)

    monkeypatch.setattr(pipeline.module, "WriteToPubSubHedged", Recorder)
    _, text, value = pipeline.flags[flag]
    for given in ([], [f"--{flag}={text}"]):
        options = pipeline.command_line(*pipeline.enough(tmp_path), *given).options()
        pipeline.module.build(beam.Pipeline(runner="FnApiRunner"), options)
    usual, changed = built
    (argument,) = (each for each in usual if usual[each] != changed[each])
    if flag == "enable_hedging":
        assert changed[argument] is None
    elif flag == "pubsub_endpoint":
        assert changed[argument] == {"api_endpoint": value}
    elif flag == "flow_control_limit_exceeded_behavior":
        assert changed[argument].limit_exceeded_behavior is LimitExceededBehavior.ERROR
    elif flag == "connections":
        assert changed[argument] == value
    else:
        differing = [
            field
            for field in dir(usual[argument])
            if not field.startswith("_")
            and not callable(getattr(usual[argument], field))
            and getattr(usual[argument], field) != getattr(changed[argument], field)
        ]
        assert [getattr(changed[argument], field) for field in differing] == [value]
        assert flag.endswith(differing[0])


@pytest.mark.parametrize(("name", "flag"), ALL_FLAGS)
@pytest.mark.parametrize("form", ["--{}=", "--{}= ", "--{}|"])
def test_a_blank_value_means_unset(name: str, flag: str, form: str) -> None:
    """A launcher that passes a parameter which was left empty gets the default, not an error."""
    pipeline = LAUNCHABLE[name]
    if flag in pipeline.required:
        with pytest.raises(SystemExit):
            pipeline.parse(*form.format(flag).split("|"))
    else:
        assert pipeline.parse(*form.format(flag).split("|"))[flag] == pipeline.flags[flag][0]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("--enable_hedging", True),
        *((f"--enable_hedging={word}", True) for word in ("true", "True", "YES", "on", "1", " true ")),
        *((f"--enable_hedging={word}", False) for word in ("false", "FALSE", "no", "Off", "0")),
    ],
)
def test_booleans_are_words(argument: str, value: bool) -> None:
    """`--enable_hedging=false` turns hedging off, whatever the case."""
    assert TEXT.parse(argument)["enable_hedging"] is value


def test_a_boolean_flag_alone_is_true() -> None:
    """A flag that turns something on needs no value."""
    parser = argparse.ArgumentParser()
    add_flag(parser, "fast", boolean, "Whether to be fast.", default=False)
    assert [parser.parse_args(given).fast for given in ([], ["--fast"], ["--fast="])] == [False, True, False]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0.5", 0.5), ("2", 2.0), ("500ms", 0.5), ("700 ms", 0.7), ("2s", 2.0), ("2 S", 2.0),
        (".5s", 0.5), ("1.5m", 90.0), ("1h", 3600.0), ("+2", 2.0),
    ],
)  # fmt: skip
def test_durations_have_units(text: str, seconds: float) -> None:
    """A duration is written as people write it, and is seconds without a unit."""
    assert TEXT.parse(f"--total_timeout={text}")["total_timeout"] == seconds


def test_repeating_a_flag_is_harmless() -> None:
    """The same value twice, or once blank, leaves no doubt about what is meant."""
    assert TEXT.parse("--hedge_delay=500ms", "--hedge_delay=", "--hedge_delay=0.5")["hedge_delay"] == 0.5


def test_beam_flags_keep_working() -> None:
    """A runner is chosen and configured as for any other Beam pipeline."""
    beam_flags = [
        "--runner=FnApiRunner", "--project=my-project", "--region=us-east1", "--experiments=a,b",
        "--experiments=c=d", "--direct_num_workers", "3", "--setup_file=./setup.py", "--save_main_session",
        "--template_location=gs://b/t", "--labels=a=b", "--sdk_container_image=image", "--machine_type=n2",
    ]  # fmt: skip
    options = TEXT.command_line("--input=x", "--topic=t", *beam_flags).options()
    assert options.view_as(StandardOptions).runner == "FnApiRunner"
    assert options.view_as(DirectOptions).direct_num_workers == 3
    every = options.get_all_options()
    assert every["experiments"] == ["a", "b", "c=d"]
    assert every["template_location"] == "gs://b/t"
    assert every["labels"] == ["a=b"]


def test_flags_of_a_job_server_are_passed_on() -> None:
    """A flag that only a job server knows can be given, on purpose, after two dashes."""
    options = TEXT.command_line("--input=x", "--topic=t", "--", "--checkpointing_interval=60000").options()
    assert options.get_all_options(retain_unknown_options=True)["checkpointing_interval"] == "60000"


@pytest.mark.parametrize("name", LAUNCHABLE)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_flag(name: str, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All that can be set can be found without reading the code, with its default."""
    with pytest.raises(SystemExit) as stopped:
        LAUNCHABLE[name].module.run([flag])
    assert stopped.value.code == 0
    said = capsys.readouterr().out
    assert [each for each in LAUNCHABLE[name].flags if f"--{each} " not in said] == []
    assert "Default block." in said
