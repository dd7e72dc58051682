"""`pipelines.text_to_pubsub` with lines of JSON, and with lines that cannot be published."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from pipelines import text_to_pubsub
from tests.pipelines.programs import figures
from tests.server.serving import TOPIC, serving

if TYPE_CHECKING:
    from pathlib import Path

DEAD = "projects/p-test/topics/dead"
JSON = ["--input_format=json", "--attribute_fields=id,country"]


def run(pattern: Path, *arguments: str) -> None:
    """Runs the pipeline in this process, on a runner that needs no download."""
    text_to_pubsub.run([f"--input={pattern}", f"--topic={TOPIC}", "--runner=FnApiRunner", *arguments])


def test_fields_become_attributes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Subscriptions can filter by what stands in a line, and what was left out is counted."""
    (tmp_path / "1.jsonl").write_bytes(b'\xef\xbb\xbf{"id": 1, "country": "NL"}\r\n\r\n \t\n{"id": "2"}')
    (tmp_path / "2.jsonl.gz").write_bytes(gzip.compress(b'\xef\xbb\xbf{"id": 3.0, "country": null}\n'))
    with serving() as server:
        run(tmp_path / "*", *JSON)
        found = {message.data: dict(message.attributes) for message in server.messages(TOPIC)}
    assert found == {
        b'{"id": 1, "country": "NL"}': {"id": "1", "country": "NL"},
        b'{"id": "2"}': {"id": "2"},
        b'{"id": 3.0, "country": null}': {"id": "3.0"},
    }
    counted = figures(capsys.readouterr().out)
    assert counted["messages published in"] == 3
    assert counted["Empty lines skipped"] == 2
    assert counted["Byte-order marks removed"] == 2
    assert counted["Attribute fields missing"] == 2


def test_a_field_becomes_the_data(tmp_path: Path) -> None:
    """Exports that wrap each message are unwrapped."""
    (tmp_path / "lines").write_bytes(b'{"id": 1, "payload": {"a": [1, 2]}}\n{"payload": "text"}\n')
    with serving() as server:
        run(tmp_path / "lines", *JSON, "--data_field=payload")
        found = {message.data: dict(message.attributes) for message in server.messages(TOPIC)}
    assert found == {b'{"a": [1, 2]}': {"id": "1"}, b"text": {}}


BAD_LINES = {
    b"not json": "a line is no JSON object",
    b'{"payload": "\xff"}': "a line is not UTF-8",
    b'{"id": 1}': "a line has no field 'payload'",
    b'{"payload": ""}': "a message must have data or attributes",
    b'{"payload": "x", "id": "%b"}' % (b"y" * 1025): "attribute 'id' has a value of 1025 B",
    b'{"payload": "%b"}' % (b"z" * 10_000_001): "a message makes a request of 100000",
}


def test_lines_that_cannot_be_published_go_to_the_dead_letter_topic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One bad line in a large export keeps no other line back, and can be looked at with the reason."""
    lines = [b'{"payload": "first"}', *BAD_LINES, b'{"payload": "last"}']
    (tmp_path / "lines").write_bytes(b"\n".join(lines))
    with serving() as server:
        server.create_topic(DEAD)
        run(tmp_path / "lines", *JSON, "--data_field=payload", f"--dead_letter_topic={DEAD}")
        assert sorted(message.data for message in server.messages(TOPIC)) == [b"first", b"last"]
        dead = {message.attributes["dead_letter_reason"]: message for message in server.messages(DEAD)}
    assert len(dead) == len(BAD_LINES)
    for line, reason in BAD_LINES.items():
        (found,) = (each for each in dead if each.startswith(reason))
        letter = dead[found]
        assert letter.attributes["dead_letter_topic"] == TOPIC
        # A line that was parsed is there as the message that it became.
        assert letter.data in line
    counted = figures(capsys.readouterr().out)
    assert counted["messages published in"] == 2
    assert counted["Dead letters"] == len(BAD_LINES)


@pytest.mark.parametrize(("line", "reason"), BAD_LINES.items(), ids=BAD_LINES.values())
def test_without_a_dead_letter_topic_such_a_line_fails_the_pipeline(
    line: bytes, reason: str, tmp_path: Path
) -> None:
    """Nothing is dropped in silence: the job fails, with what is wrong and without what the line holds."""
    (tmp_path / "lines").write_bytes(line)
    with serving(), pytest.raises(Exception, match=reason) as error:
        run(tmp_path / "lines", *JSON, "--data_field=payload")
    assert "zzz" not in str(error.value)


def test_a_text_line_that_is_too_long_goes_to_the_dead_letter_topic(tmp_path: Path) -> None:
    """A line over Pub/Sub's limit is cut there, and its length is told."""
    (tmp_path / "lines").write_bytes(b"a\n" + b"x" * 12_000_000 + b"\r\n\xff\n")
    with serving() as server:
        server.create_topic(DEAD)
        run(tmp_path / "lines", f"--dead_letter_topic={DEAD}", "--id_label=id")
        assert sorted(message.data for message in server.messages(TOPIC)) == [b"a", b"\xff"]
        assert len({message.attributes["id"] for message in server.messages(TOPIC)}) == 2
        (letter,) = server.messages(DEAD)
    assert letter.attributes["dead_letter_data_bytes"] == "12000000"
    assert set(letter.data) == {ord("x")}
