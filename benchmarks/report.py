"""What a benchmark leaves behind: numbers as CSV, a picture, and a page that says how they were made."""

from __future__ import annotations

import csv
import datetime as dt
import os
import platform
import shlex
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

RESULTS = Path(__file__).resolve().parent / "results"
_PACKAGES = ("beam-hedge", "apache-beam", "google-cloud-pubsub", "grpcio")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        key: Its name in rows and in the CSV file.
        heading: What stands above it on the page.
        form: How a value is written there, as for `format`.
    """

    key: str
    heading: str
    form: str = ""


@dataclass(frozen=True)
class Report:
    """One table, and what it shows.

    Attributes:
        name: The first part of the names of its files.
        title: Of the page.
        text: What was measured, and how to read it: paragraphs of Markdown.
        columns: From left to right.
        rows: Values by the columns' keys.
    """

    name: str
    title: str
    text: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]

    @property
    def table(self) -> str:
        """The table as Markdown."""
        lines = [[column.heading for column in self.columns], ["---"] * len(self.columns)]
        lines += [[format(row[column.key], column.form) for column in self.columns] for row in self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def write(self, picture: Figure, out: Path) -> None:
        """Writes the three files, and prints the table.

        Args:
            picture: What to save as the PNG.
            out: The folder, which is made if it is not there.
        """
        out.mkdir(parents=True, exist_ok=True)
        with (out / f"{self.name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [column.key for column in self.columns], extrasaction="ignore")
            writer.writeheader()
            writer.writerows(self.rows)
        picture.savefig(out / f"{self.name}.png")
        parts = (f"# {self.title}", self.text, f"![{self.title}]({self.name}.png)", self.table, _origin())
        (out / f"{self.name}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
        print(f"\n{self.title}\n\n{self.table}\n\nWritten: {out / self.name}.csv, .png, .md", flush=True)


def add_out(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for the folder of the files."""
    parser.add_argument(
        "--out", type=Path, default=RESULTS, help="the folder for files; default benchmarks/results"
    )


def _origin() -> str:
    """Returns where, when and how the figures were made, as a Markdown table."""
    now = dt.datetime.now(dt.timezone.utc)
    rows = {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory_gib():.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        **{package: _version(package) for package in _PACKAGES},
        "date": f"{now:%Y-%m-%d %H:%M} UTC",
        "command": f"`python {shlex.join(sys.orig_argv[1:])}`",
    }
    return "\n".join(("| made with | |\n|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _version(package: str) -> str:
    if package == "beam-hedge":
        # A clone need not be installed.
        from beam_hedge import __version__  # noqa: PLC0415

        return __version__
    return metadata.version(package)
