"""Whatever text follows a flag, the launch goes on with it or ends with a message that names the flag."""

from __future__ import annotations

import contextlib
import io
import tempfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.launching import make_pipeline
from tests.fuzz.anything import any_text
from tests.fuzz.attempt import attempt
from tests.pipelines.flags import LAUNCHABLE

if TYPE_CHECKING:
    from pathlib import Path

_digits = st.text("0123456789.+-e_ ", max_size=12)
_number = st.one_of(
    st.integers(-2, 11_000_000).map(str),
    st.floats(-1, 700).map(lambda value: f"{value:.6f}"),
    st.sampled_from(("nan", "inf", "1e9", "9" * 400, "0.0000000000001", "\u0665", "3.0", "1_0", "0x10")),
)
_duration = st.builds("".join, st.tuples(_number, st.sampled_from(("", "ms", "s", "m", "h", " s", "d"))))
_pairs = st.lists(st.tuples(any_text, any_text).map("=".join), max_size=3).map(",".join)
_words = st.sampled_from(
    ("true", "FALSE", "block", "Ignore", "json", "text", "{}", "[]", "null", '{"a": "b"}', "()")
)
_name = st.builds(
    "{}/{}/{}/{}".format, st.just("projects"), any_text, st.sampled_from(("topics", "subscriptions")), any_text
)
_text = st.one_of(any_text, _digits, _duration, _pairs, _words, _name)


@pytest.mark.parametrize("name", LAUNCHABLE)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(draw=st.data())
def test_a_flag_with_any_text_is_taken_or_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, draw: st.DataObject
) -> None:
    """A launcher's user never sees a traceback for what was typed, but the flag that is wrong."""
    # A pipeline that is made and not run leaves a folder behind.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pipeline = LAUNCHABLE[name]
    flag = draw.draw(st.sampled_from(sorted(pipeline.flags)))
    text = draw.draw(_text)
    arguments = [each for each in pipeline.enough(tmp_path) if not each.startswith(f"--{flag}=")]
    said = io.StringIO()

    def launch() -> None:
        command_line = pipeline.command_line(*arguments, f"--{flag}={text}")
        make_pipeline(command_line, command_line.options(), pipeline.module.build)

    with contextlib.redirect_stderr(said):
        _, stopped = attempt(SystemExit, launch)
    if stopped is not None:
        assert stopped.code == 2
        assert "--" in said.getvalue().splitlines()[-1]
        assert flag in said.getvalue()
