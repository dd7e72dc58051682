"""What stops the launch of `pipelines.text_to_pubsub`, and what is said then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines import text_to_pubsub
from tests.beam.text_to_pubsub_flags import FLAGS, enough

if TYPE_CHECKING:
    from pathlib import Path


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Runs the pipeline with arguments that must stop the launch, and returns what it says."""
    with pytest.raises(SystemExit) as stopped:
        text_to_pubsub.run(arguments)
    assert stopped.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


# One value outside what is allowed, or of another kind, for each flag and each edge.
BAD = [
    ("topic", "orders"), ("topic", "projects/p/topics/a b"), ("topic", "projects/p/topics/t\n"),
    ("enable_hedging", "maybe"), ("enable_hedging", "2"),
    ("hedge_delay", "99ms"), ("hedge_delay", "10.001"), ("hedge_delay", "1 day"), ("hedge_delay", "nan"),
    ("hedge_delay", "-1"), ("hedge_delay", "1e3"), ("hedge_delay", "1,5"), ("hedge_delay", "ms"),
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
    ("input", "no/such/*.file"), ("input", "unknown://bucket/file"),
]  # fmt: skip


@pytest.mark.parametrize(("flag", "text"), BAD)
def test_a_bad_value_stops_the_launch(
    flag: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the flag and the value, so that it can be found and mended; nothing runs before."""
    others = [argument for argument in enough(tmp_path) if not argument.startswith(f"--{flag}=")]
    said = refusal(capsys, *others, f"--{flag}={text}")
    assert f"--{flag}:" in said
    assert repr(text)[:100] in said
    assert any(word in said for word in ("must be", "matches no", "cannot be listed"))


def test_values_that_do_not_go_together_stop_the_launch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hedge that its batch would not live to see is refused, also if the delay is a default."""
    said = refusal(capsys, *enough(tmp_path), "--initial_rpc_timeout=1s")
    assert "--hedge_delay: must be strictly shorter than the retry settings' initial_rpc_timeout" in said
    assert "the default is 1.0" in said
    assert "got '2s'" in refusal(capsys, *enough(tmp_path), "--hedge_delay", "2s", "--total_timeout=2s")


@pytest.mark.parametrize("flag", FLAGS)
def test_abbreviations_are_refused(flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A flag that is cut short is not taken for the one it may have meant, but that one is suggested."""
    said = refusal(capsys, *enough(tmp_path), f"--{flag[:-1]}={FLAGS[flag][1]}")
    assert f"unknown flag --{flag[:-1]}: did you mean --{flag}?" in said


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
    assert message in refusal(capsys, *enough(tmp_path), *arguments)


@pytest.mark.parametrize("flag", ["input", "topic"])
def test_what_is_required_is_named(flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A launch without a source or a target says which is missing."""
    others = [argument for argument in enough(tmp_path) if not argument.startswith(f"--{flag}=")]
    assert refusal(capsys, *others).endswith(f"--{flag} is required")
