"""Reading text files line by line, as bytes."""

from __future__ import annotations

import gzip
import io
import zlib
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.io.filebasedsource import FileBasedSource
from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from pipelines.counters import StepCounter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apache_beam.io.range_trackers import OffsetRangeTracker

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MARKS_REMOVED = StepCounter("byte_order_marks_removed")
_READABLE = (CompressionTypes.UNCOMPRESSED, CompressionTypes.GZIP)


class ReadLines(beam.PTransform[beam.pvalue.PBegin, beam.PCollection[bytes]]):
    """Reads the lines of all files that match a pattern, each as the bytes between two line ends.

    A line ends with LF or CRLF. A UTF-8 byte-order mark at the beginning of a file is no part of its first
    line, and counted. All other bytes are kept as they are: bytes that are no UTF-8, spaces. Lines without any
    byte are left out and counted, as Pub/Sub takes no empty message. Files whose name ends in ".gz" are
    decompressed; one that is cut off or damaged fails the pipeline. Large uncompressed files are read in
    parts, in parallel.

    Args:
        pattern: A path or glob of any file system that Beam knows.
    """

    def __init__(self, pattern: str) -> None:
        super().__init__()
        self._pattern = pattern

    def expand(self, pipeline: beam.pvalue.PBegin) -> beam.PCollection[bytes]:
        """Adds the reading steps."""
        source = _LineSource(self._pattern, validate=False)  # type: ignore[no-untyped-call]  # Beam's __init__
        lines = pipeline | "Read" >> beam.io.Read(source)
        filled: beam.PCollection[bytes] = lines | "Skip empty lines" >> beam.ParDo(_SkipEmpty())
        return filled


def why_unreadable(pattern: str) -> str | None:
    """Returns what is wrong with the files that a pattern stands for, or None.

    Args:
        pattern: A path or glob.
    """
    try:
        files = FileSystems.match([pattern])[0].metadata_list
    except (BeamIOError, ValueError) as error:
        return f"cannot be listed: {error}"
    if not files:
        return "matches no file"
    for file in files:
        if Path(file.path).is_dir():
            return f"is a directory: name its files, such as {file.path}/*"
        if CompressionTypes.detect_compression_type(file.path) not in _READABLE:
            return f"{file.path} is compressed in another way than gzip"
    return None


class _LineSource(FileBasedSource):
    @contextmanager
    def open_file(self, file_name: str) -> Iterator[io.BufferedReader]:
        compression = CompressionTypes.detect_compression_type(file_name)
        if compression not in _READABLE:
            raise ValueError(f"{file_name} is compressed in another way than gzip")
        with ExitStack() as stack:
            file: Any = stack.enter_context(
                FileSystems.open(file_name, compression_type=CompressionTypes.UNCOMPRESSED)
            )
            if compression == CompressionTypes.GZIP:
                # Beam's reader tears a line where a file is cut off, without an error. This one raises.
                file = stack.enter_context(gzip.GzipFile(fileobj=file, mode="rb"))
            try:
                # Some file systems' files read a line in single bytes.
                yield stack.enter_context(io.BufferedReader(file, 1 << 20))
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise ValueError(f"{file_name} is damaged: {error}") from error

    def read_records(self, file_name: str, offset_range_tracker: OffsetRangeTracker) -> Iterator[bytes]:
        """Yields the lines that start within the tracker's range."""
        position = offset_range_tracker.start_position()
        with self.open_file(file_name) as file:
            if position:
                # A line starts here only if the byte before ends one.
                file.seek(position - 1)
                position += len(file.readline()) - 1
            while offset_range_tracker.try_claim(position):
                line = file.readline()
                if not line:
                    return
                if position == 0 and line.startswith(_BYTE_ORDER_MARK):
                    _MARKS_REMOVED.inc()
                    yield _without_end(line.removeprefix(_BYTE_ORDER_MARK))
                else:
                    yield _without_end(line)
                position += len(line)


def _without_end(line: bytes) -> bytes:
    if line.endswith(b"\r\n"):
        return line[:-2]
    return line.removesuffix(b"\n")


class _SkipEmpty(beam.DoFn):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Beam's has no annotations
        self._skipped = StepCounter("empty_lines_skipped")

    def process(self, line: bytes) -> Iterator[bytes]:
        if line:
            yield line
        else:
            self._skipped.inc()
