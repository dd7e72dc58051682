"""The command line of `pipelines.text_to_pubsub`: what is accepted, and how it is understood."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from google.cloud.pubsub_v1.types import LimitExceededBehavior

from beam_hedge import HedgingSettings, RetrySettings, WriteToPubSubHedged
from pipelines import text_to_pubsub
from pipelines.flags import add_flag
from pipelines.options import HedgingOptions
from pipelines.text_options import TextOptions
from pipelines.values import boolean
from tests.beam.text_to_pubsub_flags import FLAGS, command_line, enough
from tests.server.serving import TOPIC

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = [flag for flag in FLAGS if flag not in ("topic", "input", "outcomes")]


def parse(*arguments: str) -> dict[str, Any]:
    """Parses a command line that has what is required; returns the values of the pipeline's own flags."""
    given = [f"--{flag}={value}" for flag, value in (("input", "x"), ("topic", TOPIC))]
    own = [argument for argument in given if not any(a.startswith(argument.split("=")[0]) for a in arguments)]
    options = command_line(*own, *arguments).options()
    views = (options.view_as(HedgingOptions), options.view_as(TextOptions))
    return {flag: getattr(view, flag) for view in views for flag in FLAGS if flag in dir(view)}


def test_defaults_are_those_of_the_sink() -> None:
    """Who gives no flag gets what the library's documentation says."""
    expected = {flag: default for flag, (default, _, _) in FLAGS.items()}
    assert parse() == {**expected, "input": "x", "topic": TOPIC}
    arguments = PipelineOptions([]).view_as(HedgingOptions).sink_arguments()
    assert arguments["settings"] == HedgingSettings()
    assert arguments["retry_settings"] == RetrySettings()


def test_every_flag_is_known_to_these_tests() -> None:
    """A flag that is added later gets a test of its own."""
    assert set(parse()) == set(FLAGS)
    assert set(FLAGS) == {
        flag for kind in (HedgingOptions, TextOptions) for flag in kind([]).get_all_options(current_only=True)
    }


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("form", ["--{}={}", "--{} {}"])
def test_each_flag_takes_a_value(flag: str, form: str) -> None:
    """Values are understood in both of the usual forms."""
    _, text, value = FLAGS[flag]
    assert parse(*form.format(flag, text).split(" "))[flag] == value


@pytest.mark.parametrize("flag", SETTINGS)
def test_each_flag_reaches_the_sink(flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No flag is accepted and then ignored."""
    built: list[dict[str, Any]] = []

    class Recorder(WriteToPubSubHedged):
        def __init__(self, **arguments: Any) -> None:
            built.append(arguments)
            super().__init__(**arguments)

    monkeypatch.setattr(text_to_pubsub, "WriteToPubSubHedged", Recorder)
    for given in ([], [f"--{flag}={FLAGS[flag][1]}"]):
        text_to_pubsub.build(
            beam.Pipeline(runner="FnApiRunner"), command_line(*enough(tmp_path), *given).options()
        )
    usual, changed = built
    (name,) = (name for name in usual if usual[name] != changed[name])
    value = FLAGS[flag][2]
    if name == "settings" and flag == "enable_hedging":
        assert changed[name] is None
    elif flag == "pubsub_endpoint":
        assert changed[name] == {"api_endpoint": value}
    elif flag == "flow_control_limit_exceeded_behavior":
        assert changed[name].limit_exceeded_behavior is LimitExceededBehavior.ERROR
    elif flag == "connections":
        assert changed[name] == value
    else:
        differing = [
            field
            for field in dir(usual[name])
            if not field.startswith("_")
            and not callable(getattr(usual[name], field))
            and getattr(usual[name], field) != getattr(changed[name], field)
        ]
        assert [getattr(changed[name], field) for field in differing] == [value]
        assert flag.endswith(differing[0])


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("form", ["--{}=", "--{}= ", "--{}|"])
def test_a_blank_value_means_unset(flag: str, form: str) -> None:
    """A launcher that passes a parameter which was left empty gets the default, not an error."""
    if flag in ("input", "topic"):
        with pytest.raises(SystemExit):
            parse(*form.format(flag).split("|"))
    else:
        assert parse(*form.format(flag).split("|"))[flag] == FLAGS[flag][0]


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
    assert parse(argument)["enable_hedging"] is value


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
    assert parse(f"--total_timeout={text}")["total_timeout"] == seconds


def test_repeating_a_flag_is_harmless() -> None:
    """The same value twice, or once blank, leaves no doubt about what is meant."""
    assert parse("--hedge_delay=500ms", "--hedge_delay=", "--hedge_delay=0.5")["hedge_delay"] == 0.5


def test_beam_flags_keep_working() -> None:
    """A runner is chosen and configured as for any other Beam pipeline."""
    beam_flags = [
        "--runner=FnApiRunner", "--project=my-project", "--region=us-east1", "--experiments=a,b",
        "--experiments=c=d", "--direct_num_workers", "3", "--setup_file=./setup.py", "--save_main_session",
        "--template_location=gs://b/t", "--labels=a=b", "--sdk_container_image=image", "--machine_type=n2",
    ]  # fmt: skip
    options = command_line("--input=x", f"--topic={TOPIC}", *beam_flags).options()
    assert options.view_as(StandardOptions).runner == "FnApiRunner"
    assert options.view_as(DirectOptions).direct_num_workers == 3
    every = options.get_all_options()
    assert every["experiments"] == ["a", "b", "c=d"]
    assert every["template_location"] == "gs://b/t"
    assert every["labels"] == ["a=b"]


def test_flags_of_a_job_server_are_passed_on() -> None:
    """A flag that only a job server knows can be given, on purpose, after two dashes."""
    options = command_line("--input=x", f"--topic={TOPIC}", "--", "--checkpointing_interval=60000").options()
    assert options.get_all_options(retain_unknown_options=True)["checkpointing_interval"] == "60000"


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_flag(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All that can be set can be found without reading the code, with its default."""
    with pytest.raises(SystemExit) as stopped:
        text_to_pubsub.run([flag])
    assert stopped.value.code == 0
    said = capsys.readouterr().out
    assert [name for name in FLAGS if f"--{name} " not in said] == []
    assert "Default block." in said
