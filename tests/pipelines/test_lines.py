"""How `pipelines.text_to_pubsub` reads files: which bytes become a line."""

from __future__ import annotations

import gzip
import random
from typing import TYPE_CHECKING, Any

import pytest
from apache_beam.io import source_test_utils
from apache_beam.io.range_trackers import OffsetRangeTracker

from pipelines.lines import _LineSource, why_unreadable

if TYPE_CHECKING:
    from pathlib import Path

CONTENTS = {
    "LF": (b"a\nb\n", [b"a", b"b"]),
    "CRLF": (b"a\r\nb\r\n", [b"a", b"b"]),
    "both": (b"a\r\nb\nc\r\n", [b"a", b"b", b"c"]),
    "no end of the last line": (b"a\nb", [b"a", b"b"]),
    "CR is no line end": (b"a\rb\nc\r\r\nd\r", [b"a\rb", b"c\r", b"d\r"]),
    "spaces stay": (b" a \n\t\n", [b" a ", b"\t"]),
    "byte-order mark": (b"\xef\xbb\xbfa\nb\n", [b"a", b"b"]),
    "nothing but a byte-order mark": (b"\xef\xbb\xbf", [b""]),
    "byte-order marks later on": (b"a\xef\xbb\xbf\n\xef\xbb\xbfb\n", [b"a\xef\xbb\xbf", b"\xef\xbb\xbfb"]),
    "byte-order mark of UTF-16": ("\ufeffa".encode("utf-16-le"), [b"\xff\xfea\x00"]),
    "no UTF-8": (b"\xff\xfe\x00\n\xe9t\xe9\n", [b"\xff\xfe\x00", b"\xe9t\xe9"]),
    "line ends of Unicode are none": ("a\u2028b\x0bc\x85\n".encode(), ["a\u2028b\x0bc\x85".encode()]),
    "empty lines": (b"\n\na\n\r\n\nb\n\n", [b"", b"", b"a", b"", b"", b"b", b""]),
    "only line ends": (b"\r\n\n", [b"", b""]),
    "one byte": (b"a", [b"a"]),
    "empty": (b"", []),
}


def source_of(pattern: str | Path) -> Any:
    """Makes the source that the pipeline reads a pattern with."""
    return _LineSource(str(pattern))  # type: ignore[no-untyped-call]  # Beam's __init__


def read(pattern: str | Path) -> list[bytes]:
    """Reads all files of a pattern as a runner would, unsplit."""
    parts = source_of(pattern).split(1 << 40)
    return [line for part in parts for line in source_test_utils.read_from_source(part.source)]


@pytest.mark.parametrize("name", ["lines.txt", "lines.txt.gz", "LINES.GZ"])
@pytest.mark.parametrize(("content", "lines"), CONTENTS.values(), ids=CONTENTS)
def test_lines_are_the_bytes_between_line_ends(
    content: bytes, lines: list[bytes], name: str, tmp_path: Path
) -> None:
    """What is in the file arrives byte for byte, compressed or not, with Unix or Windows line ends."""
    zipped = name.lower().endswith(".gz")
    (tmp_path / name).write_bytes(gzip.compress(content) if zipped else content)
    assert read(tmp_path / name) == lines


def test_a_line_longer_than_any_buffer_is_one_line(tmp_path: Path) -> None:
    """A line is not cut where a buffer ends."""
    (tmp_path / "long.txt").write_bytes(b"x" * 3_000_000 + b"\r\ny")
    assert [len(line) for line in read(tmp_path / "long.txt")] == [3_000_000, 1]


def test_a_glob_reads_all_of_its_files(tmp_path: Path) -> None:
    """Plain and compressed files can stand side by side; names with brackets and spaces are read, too."""
    (tmp_path / "1.txt").write_bytes(b"one")
    (tmp_path / "2 [b].txt").write_bytes(b"two\n")
    (tmp_path / "3.txt.gz").write_bytes(gzip.compress(b"three\n") + gzip.compress(b"four\n"))
    (tmp_path / "other").write_bytes(b"other\n")
    assert sorted(read(tmp_path / "*.txt*")) == [b"four", b"one", b"three", b"two"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_file_read_in_parts_gives_each_line_once(end: bytes, tmp_path: Path) -> None:
    """A large file that many workers share loses no line and repeats none, wherever it is cut."""
    rng = random.Random(5)
    lines = [b"%d" % number * rng.randrange(4) for number in range(12)]
    content = end.join(lines) + end
    (tmp_path / "lines.txt").write_bytes(content)
    source = source_of(tmp_path / "lines.txt")
    for size in range(1, len(content) + 1):
        parts = list(source.split(size))
        assert [line for part in parts for line in source_test_utils.read_from_source(part.source)] == lines
    (whole,) = source.split(1 << 40)
    source_test_utils.assert_split_at_fraction_exhaustive(
        whole.source, whole.start_position, whole.stop_position, perform_multi_threaded_test=False
    )


def test_a_range_takes_the_lines_that_start_in_it(tmp_path: Path) -> None:
    """A worker leaves to the next one what starts in the next one's part."""
    (tmp_path / "lines.txt").write_bytes(b"ab\ncd\nef\n")
    source = source_of(tmp_path / "lines.txt")
    ranges = ((0, 3), (0, 4), (1, 3), (2, 4), (3, 4), (4, 6), (4, 9), (7, 9))
    got = [list(source.read_records(str(tmp_path / "lines.txt"), OffsetRangeTracker(*each))) for each in ranges]
    assert got == [[b"ab"], [b"ab", b"cd"], [], [b"cd"], [b"cd"], [], [b"ef"], []]


WHOLE = gzip.compress(b"".join(b"line %d\n" % number for number in range(1000)), mtime=0)


@pytest.mark.parametrize(
    "damaged",
    [
        WHOLE[: len(WHOLE) // 2],
        WHOLE[:-4],
        WHOLE[:100] + bytes([WHOLE[100] ^ 255]) + WHOLE[101:],
        WHOLE + b"no gzip",
        b"line 1\nline 2\n",
    ],
    ids=["cut in half", "cut before its end", "a byte changed", "something follows", "not compressed"],
)
def test_a_damaged_file_is_an_error(damaged: bytes, tmp_path: Path) -> None:
    """A file that is not whole is never published in part as if that were all of it."""
    (tmp_path / "lines.gz").write_bytes(damaged)
    with pytest.raises(ValueError, match=r"lines\.gz is damaged"):
        read(tmp_path / "lines.gz")


def test_padding_after_a_gzip_file_is_no_damage(tmp_path: Path) -> None:
    """Tape and block devices fill files up with zeros; such a file is read."""
    (tmp_path / "lines.gz").write_bytes(WHOLE + bytes(512))
    assert len(read(tmp_path / "lines.gz")) == 1000


@pytest.mark.parametrize("name", ["a.bz2", "a.zst", "a.xz", "a.deflate"])
def test_other_compressions_are_refused(name: str, tmp_path: Path) -> None:
    """Compressed bytes are never published as if they were lines."""
    (tmp_path / name).write_bytes(b"anything")
    assert why_unreadable(str(tmp_path / "*")) == f"{tmp_path / name} is compressed in another way than gzip"
    with pytest.raises(ValueError, match="is compressed in another way than gzip"):
        read(tmp_path / name)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    """Who names a folder is told how to name its files."""
    assert why_unreadable(str(tmp_path)) == f"is a directory: name its files, such as {tmp_path}/*"


def test_files_that_can_be_read_are_accepted(tmp_path: Path) -> None:
    """There is nothing to say about plain and gzip files, the empty ones included."""
    for name in ("a", "b.txt", "c.csv.gz"):
        (tmp_path / name).touch()
    assert why_unreadable(f"{tmp_path}/*") is None
