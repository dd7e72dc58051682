"""C20: flags that a launcher passes as `--name=value`, and those that somebody mistyped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pipelines.flags import LAUNCHABLE

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", LAUNCHABLE)
def test_c20_false_is_false(name: str) -> None:
    """`--enable_hedging=false` turns hedging off, where bool("false") would turn it on."""
    assert LAUNCHABLE[name].parse("--enable_hedging=false")["enable_hedging"] is False


@pytest.mark.parametrize("name", LAUNCHABLE)
@pytest.mark.parametrize("argument", ["--hedge_max=7", "--hedge_dely=1", "--enable_hedging=maybe"])
def test_c20_what_is_wrong_stops_the_launch_and_is_named(
    name: str, argument: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flag that is cut short, misspelt or has a value that is none is never ignored."""
    pipeline = LAUNCHABLE[name]
    with pytest.raises(SystemExit) as stopped:
        pipeline.module.run([*pipeline.enough(tmp_path), argument])
    assert stopped.value.code == 2
    assert argument.partition("=")[0] in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "other"), [("text_to_pubsub", "pubsub_to_pubsub"), ("pubsub_to_pubsub", "text_to_pubsub")]
)
def test_flags_of_another_pipeline_stop_the_launch(
    name: str, other: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flag that only the other pipeline has would be without effect, and is named."""
    pipeline = LAUNCHABLE[name]
    foreign = set(LAUNCHABLE[other].flags) - set(pipeline.flags)
    assert foreign
    for flag in foreign:
        with pytest.raises(SystemExit):
            pipeline.module.run([*pipeline.enough(tmp_path), f"--{flag}={LAUNCHABLE[other].flags[flag][1]}"])
        assert f"unknown flag --{flag}" in capsys.readouterr().err.splitlines()[-1]
