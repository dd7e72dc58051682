"""`pipelines.text_to_pubsub` from files to a topic."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest

from beam_hedge.testing import NEVER, Reply
from pipelines import text_to_pubsub
from tests.server.serving import TOPIC, by_attempt, serving

if TYPE_CHECKING:
    from apache_beam.runners.runner import PipelineResult

    from beam_hedge.testing import LocalPubSub

ROOT = Path(__file__).resolve().parents[2]
RUNNER = "--runner=FnApiRunner"


def run(pattern: str | Path, *arguments: str) -> PipelineResult:
    """Runs the pipeline in this process, on a runner that needs no download."""
    return text_to_pubsub.run([f"--input={pattern}", f"--topic={TOPIC}", RUNNER, *arguments])


def stored(server: LocalPubSub) -> list[bytes]:
    """Returns the data of all stored messages, sorted."""
    return sorted(message.data for message in server.messages(TOPIC))


def test_every_line_of_every_file_arrives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines of plain and gzip files arrive byte for byte; what is left out is counted, and that is said."""
    (tmp_path / "1.txt").write_bytes(b"\xef\xbb\xbfone\r\n\r\ntwo \xff\r\n\n")
    (tmp_path / "2.txt.gz").write_bytes(gzip.compress(b"\nthree\n" + b"four"))
    with serving() as server:
        run(tmp_path / "*.txt*", "--batch_max_messages=3")
        assert stored(server) == sorted([b"one", b"two \xff", b"three", b"four"])
    said = capsys.readouterr().out
    assert said.startswith("DONE: 4 messages published in ")
    assert (
        "Empty lines skipped: 3. Byte-order marks removed: 1. Attribute fields missing: 0. Dead letters: 0.\n"
        in said
    )


def test_files_without_lines_are_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A day on which nothing happened leaves an empty file, and a pipeline that succeeds."""
    (tmp_path / "empty.txt").touch()
    (tmp_path / "blank.txt").write_bytes(b"\n\n")
    with serving() as server:
        run(tmp_path / "*")
        assert server.ledger().requests == 0
    assert "DONE: 0 messages published" in capsys.readouterr().out


def test_a_damaged_file_fails_the_pipeline(tmp_path: Path) -> None:
    """A transfer that broke off is noticed before its data is taken for complete."""
    lines = b"".join(b"line %d\n" % number for number in range(1000))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(lines)[:-100])
    with serving(), pytest.raises(Exception, match=r"cut\.gz is damaged"):
        run(tmp_path / "cut.gz")


@pytest.mark.parametrize(
    ("hedging", "original", "requests"),
    [("true", NEVER, 2), ("false", Reply(delay=0.5), 1)],
    ids=["true", "false"],
)
def test_hedging_is_on_unless_turned_off(hedging: str, original: Reply, requests: int, tmp_path: Path) -> None:
    """A batch that is late is sent again, and `--enable_hedging=false` is taken at its word."""
    (tmp_path / "lines").write_bytes(b"a\n")
    with serving(by_attempt(original, None)) as server:
        arguments = ["--hedge_delay=300ms", "--hedge_initial_tokens=1"]
        run(tmp_path / "lines", f"--enable_hedging={hedging}", *arguments)
        assert server.ledger().requests == requests


def test_outcomes_tell_what_became_of_each_batch(tmp_path: Path) -> None:
    """The effect of hedging can be measured from the file alone: one JSON line a batch."""
    (tmp_path / "lines").write_bytes(b"a\nb\nc\n")
    outcomes = tmp_path / "outcomes.jsonl"
    tokens = ["--hedge_delay=100ms", "--hedge_initial_tokens=9"]
    # Only originals hang: each batch is published by its first hedge.
    with serving(by_attempt(NEVER, None)):
        run(
            tmp_path / "lines",
            *tokens,
            "--batch_max_messages=2",
            "--batch_max_latency=1m",
            f"--outcomes={outcomes}",
        )
    found = [json.loads(line) for line in outcomes.read_text(encoding="utf-8").splitlines()]
    assert all(batch.pop("latency_ms") >= 100 for batch in found)
    same = {"attempts": 2, "hedges": 1, "hedges_throttled": 0, "retries": 0, "winner": 1}
    assert sorted(found, key=lambda batch: batch["messages"]) == [
        {"messages": 1, **same},
        {"messages": 2, **same},
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lines", "outcomes.jsonl"]


def test_a_failed_publish_fails_the_pipeline(tmp_path: Path) -> None:
    """A topic that does not exist is an error that names it, not a job that is done."""
    (tmp_path / "lines").write_bytes(b"a\n")
    with serving() as server:
        server.delete_topic(TOPIC)
        with pytest.raises(Exception, match=f"was not published to {TOPIC}: NOT_FOUND"):
            run(tmp_path / "lines")


@pytest.mark.parametrize(
    ("argument", "waits"),
    [("--template_location=gs://b/t", 0), ("--no_wait_until_finish", 0), ("--project=p", 1)],
)
def test_a_launcher_does_not_wait(
    argument: str, waits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Making a template ends when it is made: there is no job to wait for."""
    (tmp_path / "lines").write_bytes(b"a\n")
    waited: list[None] = []

    class Result:
        state = "DONE"

        def wait_until_finish(self) -> None:
            waited.append(None)

        def metrics(self) -> Any:
            return beam.metrics.metric.MetricResults()

    result: Any = Result()
    monkeypatch.setattr(beam.Pipeline, "run", lambda _: result)
    monkeypatch.setattr(text_to_pubsub, "counts", lambda _: Counter())
    assert run(tmp_path / "lines", argument) is result
    assert len(waited) == waits


def test_it_runs_as_a_program(tmp_path: Path) -> None:
    """The command in the documentation works as it is written, from a folder that is not the project's."""
    (tmp_path / "lines.gz").write_bytes(gzip.compress(b"".join(b"line %d\n" % number for number in range(250))))
    with serving() as server:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pipelines.text_to_pubsub"),
                *("--input", "lines.gz", "--topic", TOPIC, "--outcomes", "outcomes.jsonl", RUNNER),
            ],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert stored(server) == sorted(b"line %d" % number for number in range(250))
    assert done.stdout.startswith("DONE: 250 messages published in ")
    batches = [
        json.loads(line) for line in (tmp_path / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert sum(batch["messages"] for batch in batches) == 250


def test_a_wrong_flag_ends_the_program_with_a_status(tmp_path: Path) -> None:
    """A scheduler that starts the pipeline sees that it did not run."""
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.text_to_pubsub", "--hedge_max=7"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 2
    assert "unknown flag --hedge_max: did you mean --hedge_max_tokens?" in done.stderr
    assert "Traceback" not in done.stderr
