"""What stops the launch of a pipeline, and what is said then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pipelines.flags import ALL_FLAGS, LAUNCHABLE, SUBSCRIPTION

if TYPE_CHECKING:
    from pathlib import Path

    from tests.pipelines.flags import Launchable

TEXT = LAUNCHABLE["text_to_pubsub"]
RELAY = LAUNCHABLE["pubsub_to_pubsub"]


def refusal(capsys: pytest.CaptureFixture[str], pipeline: Launchable, *arguments: str) -> str:
    """Runs a pipeline with arguments that must stop the launch, and returns what it says."""
    with pytest.raises(SystemExit) as stopped:
        pipeline.module.run(arguments)
    assert stopped.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


# One value outside what is allowed, or of another kind, for each flag and each edge.
BAD = [
    ("topic", "orders"), ("topic", "projects/p/topics/a b"), ("topic", "projects/p/topics/t\n"),
    ("enable_hedging", "maybe"), ("enable_hedging", "2"),
    ("hedge_delay", "99ms"), ("hedge_delay", "10.001"), ("hedge_delay", "1 day"), ("hedge_delay", "nan"),
    ("hedge_delay", "-1"), ("hedge_delay", "1e3"), ("hedge_delay", "1,5"), ("hedge_delay", "ms"),
    ("hedge_delay", "2\u017f"),
    ("hedge_max_tokens", "0"), ("hedge_max_tokens", "251"), ("hedge_max_tokens", "2.5"),
    ("hedge_max_tokens", "1_0"), ("hedge_max_tokens", "9" * 5000), ("hedge_max_tokens", "\u0665"),
    ("hedge_refill_ratio", "0"), ("hedge_refill_ratio", "0.21"), ("hedge_refill_ratio", "inf"),
    ("hedge_initial_tokens", "-1"), ("hedge_initial_tokens", "51"),
    ("initial_rpc_timeout", "0"), ("initial_rpc_timeout", "25h"),
    ("total_timeout", "0"), ("total_timeout", "soon"),
    ("initial_retry_delay", "0"), ("initial_retry_delay", "25h"),
    ("retry_delay_multiplier", "0.5"), ("retry_delay_multiplier", "101"),
    ("max_retry_delay", "50ms"), ("max_retry_delay", "25h"),
    ("batch_max_messages", "0"), ("batch_max_messages", "1001"),
    ("batch_max_bytes", "0"), ("batch_max_bytes", "10000001"),
    ("batch_max_latency", "-1s"), ("batch_max_latency", "25h"),
    ("flow_control_message_limit", "0"), ("flow_control_byte_limit", "0"),
    ("flow_control_limit_exceeded_behavior", "wait"),
    ("connections", "0"), ("connections", "9"), ("connections", "two"),
    ("id_label", "googid"), ("id_label", "x" * 257),
    ("dead_letter_topic", "dead"), ("dead_letter_topic", "projects/p-test/topics/out"),
]  # fmt: skip
BAD_TEXT = [
    ("input", "no/such/*.file"), ("input", "unknown://bucket/file"),
    ("input_format", "csv"),
    ("attribute_fields", "a,"), ("attribute_fields", "a,a"), ("attribute_fields", "goog"),
    ("attribute_fields", ",".join(f"f{number}" for number in range(101))),
    ("attribute_fields", "a"), ("data_field", "a"),  # without --input_format=json
]  # fmt: skip
BAD_RELAY = [
    ("input_subscription", "sub"), ("input_subscription", "projects/p/topics/t"),
    ("input_subscription", f"{SUBSCRIPTION} "), ("input_subscription", "projects/p/subscriptions/ab"),
    ("filter_value", "a"), ("filter_regex", "a"),  # without --filter_key
    ("filter_regex", "("),
    ("rename_attributes", "a"), ("rename_attributes", "a=b,a=c"), ("rename_attributes", "a=c,b=c"),
    ("rename_attributes", "a="), ("rename_attributes", "=a"), ("rename_attributes", "a=goog"),
    ("rename_attributes", "{"), ("rename_attributes", '{"a": 1}'), ("rename_attributes", '{"a":"b","a":"c"}'),
    ("add_attributes", "a"), ("add_attributes", "=a"), ("add_attributes", "a=b,a=c"),
    ("add_attributes", "googa=b"), ("add_attributes", "k" * 257 + "=v"),
    ("add_attributes", "k=" + "\u00e9" * 513), ("add_attributes", '["a"]'), ("add_attributes", '{"a": null}'),
    ("add_attributes", ",".join(f"k{number}=v" for number in range(101))),
    ("ordering_key_attribute", "googkey"), ("timestamp_attribute", "x" * 257),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "flag", "text"),
    [
        *(("text_to_pubsub", *bad) for bad in BAD + BAD_TEXT),
        *(("pubsub_to_pubsub", *bad) for bad in BAD + BAD_RELAY),
    ],
)
def test_a_bad_value_stops_the_launch(
    name: str, flag: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the flag and the value, so that it can be found and mended; nothing runs before."""
    pipeline = LAUNCHABLE[name]
    others = [argument for argument in pipeline.enough(tmp_path) if not argument.startswith(f"--{flag}=")]
    said = refusal(capsys, pipeline, *others, f"--{flag}={text}")
    assert f"--{flag}:" in said
    assert repr(text)[:100] in said
    assert any(word in said for word in ("must ", "matches no", "cannot be listed"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--filter_key=k", "--filter_value=a", "--filter_regex=b"],
            "argument --filter_regex: must be left out",
        ),
        (["--add_attributes=a=1", "--rename_attributes=b=a"], "argument --add_attributes: must be without"),
        (["--add_attributes=id=1", "--id_label=id"], "argument --id_label: must be without the attribute 'id'"),
        (["--timestamp_attribute=x", "--ordering_key_attribute=x"], "argument --timestamp_attribute: must be"),
        (["--timestamp_attribute=x", "--id_label=x"], "argument --timestamp_attribute: must be without"),
        (["--rename_attributes=a=x", "--ordering_key_attribute=x"], "argument --ordering_key_attribute: must"),
        (
            ["--add_attributes=" + ",".join(f"k{n}=v" for n in range(100)), "--id_label=id"],
            "argument --add_attributes: must be fewer: 101 attributes would be set",
        ),
        (["--runner=FnApiRunner"], "argument --runner: FnApiRunner ends before a stream does"),
    ],
)
def test_flags_of_the_relay_that_do_not_go_together_stop_the_launch(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A relay that could only refuse messages, or overwrite one attribute with another, does not start."""
    assert message in refusal(capsys, RELAY, *RELAY.enough(tmp_path), *arguments)


def test_values_that_do_not_go_together_stop_the_launch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hedge that its batch would not live to see is refused, also if the delay is a default."""
    said = refusal(capsys, TEXT, *TEXT.enough(tmp_path), "--initial_rpc_timeout=1s")
    assert "--hedge_delay: must be strictly shorter than the retry settings' initial_rpc_timeout" in said
    assert "the default is 1.0" in said
    assert "got '2s'" in refusal(
        capsys, TEXT, *TEXT.enough(tmp_path), "--hedge_delay", "2s", "--total_timeout=2s"
    )


@pytest.mark.parametrize(("name", "flag"), ALL_FLAGS)
def test_abbreviations_are_refused(
    name: str, flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flag that is cut short is not taken for the one it may have meant, but that one is suggested."""
    pipeline = LAUNCHABLE[name]
    said = refusal(capsys, pipeline, *pipeline.enough(tmp_path), f"--{flag[:-1]}={pipeline.flags[flag][1]}")
    assert f"unknown flag --{flag[:-1]}: did you mean --{flag}?" in said


@pytest.mark.parametrize(("name", "flag"), ALL_FLAGS)
def test_misspelt_flags_are_refused(
    name: str, flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flag with one letter too few or too many is named and not ignored, as Beam would."""
    pipeline = LAUNCHABLE[name]
    for wrong in (f"{flag[:2]}{flag[3:]}", f"{flag}s", flag.replace("_", "-", 1) + "-"):
        said = refusal(capsys, pipeline, *pipeline.enough(tmp_path), f"--{wrong}={pipeline.flags[flag][1]}")
        assert f"unknown flag --{wrong}: did you mean --{flag}?" in said


@pytest.mark.parametrize(("name", "flag"), ALL_FLAGS)
def test_contradictions_are_refused(
    name: str, flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flag that is given twice with different values leaves it open what is meant, so nothing starts."""
    pipeline = LAUNCHABLE[name]
    default, text, _ = pipeline.flags[flag]
    first = pipeline.required.get(flag, default if default is not None else f"{text}2")
    given = [argument for argument in pipeline.enough(tmp_path) if not argument.startswith(f"--{flag}=")]
    said = refusal(capsys, pipeline, *given, f"--{flag}={first}", f"--{flag}={text}")
    assert f"argument --{flag}: is given more than once" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hedge_max=7"], "unknown flag --hedge_max: did you mean --hedge_max_tokens?"),
        (["--hedge_dely=1"], "unknown flag --hedge_dely: did you mean --hedge_delay?"),
        (["--hedge_dely", "1"], "unknown flag --hedge_dely: did you mean --hedge_delay?"),
        (["--hedge-delay=1"], "unknown flag --hedge-delay: did you mean --hedge_delay?"),
        (["--Connections=1"], "unknown flag --Connections: did you mean --connections?"),
        (["--runer=FnApiRunner"], "unknown flag --runer: did you mean --runner?"),
        (["--zzzzzz"], "unknown flag --zzzzzz"),
        (["-hedge_delay=1"], "unknown flag -hedge_delay=1: flags begin with two dashes"),
        (["hedge_delay=1"], "unexpected argument 'hedge_delay=1'"),
        (["--streaming", "true"], "unexpected argument 'true'"),
        (["--hedge_delay"], "argument --hedge_delay: expected one argument"),
        (["--direct_num_workers=many"], "argument --direct_num_workers: invalid int value: 'many'"),
        (["--runner=NoSuchRunner"], "argument --runner: Unexpected pipeline runner: NoSuchRunner"),
        (["--runner=no.such.Runner"], "argument --runner: No module named 'no'"),
        (
            ["--hedge_delay=1", "--hedge_delay=2"],
            "argument --hedge_delay: is given more than once: 1.0 and 2.0",
        ),
        (["--topic=projects/p/topics/other"], "argument --topic: is given more than once"),
        (["--runner=DataflowRunner"], "Missing required option: region."),
    ],
)
def test_a_wrong_flag_stops_the_launch(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beam would ignore these flags; here nothing runs with a setting that was not meant."""
    assert message in refusal(capsys, TEXT, *TEXT.enough(tmp_path), *arguments)


@pytest.mark.parametrize(
    ("name", "flag"), [(name, flag) for name, pipeline in LAUNCHABLE.items() for flag in pipeline.required]
)
def test_what_is_required_is_named(
    name: str, flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A launch without a source or a target says which is missing."""
    pipeline = LAUNCHABLE[name]
    others = [argument for argument in pipeline.enough(tmp_path) if not argument.startswith(f"--{flag}=")]
    assert refusal(capsys, pipeline, *others).endswith(f"--{flag} is required")
