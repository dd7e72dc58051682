"""Runs the fault matrix and writes docs/reliability.md: `python -m tools.reliability [--repeat N]`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.faults.row import ROWS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reliability.md"
FOLDER = "tests/faults"
_QUICK_SECONDS = 2.0
_REPEATS_OF_SLOW_TESTS = 3
_HEADER = (
    "| fault | messages | acknowledged | failed, and the caller knows | lost | duplicated | hedges "
    "| back to normal | test |\n|---|---|---|---|---|---|---|---|---|"
)
_INTRO = """# Reliability

What becomes of messages when something goes wrong. Each row is a test in `tests/faults/` that publishes to a
server on the same machine, over real gRPC, and accounts for every message.

- **Lost**: the caller was told nothing of the message, or was told that it is published, and the service does
  not store it. A test with a lost message fails.
- **Failed, and the caller knows**: the caller got an error for the message. In a pipeline its bundle fails and
  the runner tries it again, or the message comes out as a dead letter. After some errors the message may be
  stored all the same.
- **Duplicated**: copies that the service stores beyond the first of each message. Pub/Sub is at-least-once: a
  request can be stored and its answer be lost or late, and then a retry or a hedge stores the message again.
  An id attribute (`id_label`) makes copies recognisable.
- **Hedges**: second copies of requests, sent because an answer was late. A request can hold messages of several
  bundles. The token bucket bounds hedges.
- **Back to normal**: from the end of the fault until all that it held up was acknowledged and a new message
  went through at its first attempt; of a connection that stays half open, from its first moment until another
  one has taken its place. Empty where the fault is one of single calls. It depends on the machine, and tests
  assert no more than a generous bound.

Timeouts and outages are short here, so that the tests are. Longer ones are measured, not tested, in
`benchmarks/connections`.

Each figure is the worst of its column over the row's runs: {runs}. To make this page again:
`python -m tools.reliability --repeat 20`, which runs tests of less than 2 s 20 times and the others 3 times.
"""

_Line = dict[str, Any]
# The worst of a column over the runs of a row.
_WORST: Mapping[str, Callable[[Iterable[Any]], Any]] = {
    "messages": max,
    "acknowledged": min,
    "failed": max,
    "dead_lettered": max,
    "lost": max,
    "duplicated": max,
    "hedges": max,
    "recovery": lambda values: max((each for each in values if each is not None), default=None),
}


def run(tests: Sequence[str]) -> list[_Line]:
    """Runs tests, one after the other, and returns their rows as they were written.

    Raises:
        SystemExit: A test failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        ended = subprocess.run(command, cwd=ROOT, env={**os.environ, ROWS_VARIABLE: str(rows)}, check=False)
        if ended.returncode:
            sys.exit("A test failed, so the page stays as it is.")
        return [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]


def repeat(times: int) -> list[_Line]:
    """Runs all tests, the quick ones `times` times, the others at most three times; returns all rows."""
    lines = run([FOLDER])
    seconds: dict[str, float] = {}
    for line in lines:
        seconds[line["test"]] = max(line["seconds"], seconds.get(line["test"], 0.0))
    for number in range(1, times):
        tests = [
            test
            for test, duration in seconds.items()
            if duration < _QUICK_SECONDS or number < _REPEATS_OF_SLOW_TESTS
        ]
        lines += run(tests) if tests else []
    return lines


def worst(lines: Sequence[_Line]) -> list[_Line]:
    """Returns one row for each fault of each test, in the order of their first runs, with how often it ran."""
    found: dict[tuple[str, str, str], list[_Line]] = {}
    for line in lines:
        found.setdefault((line["section"], line["fault"], line["test"]), []).append(line)
    return [
        {
            **same[0],
            **{name: pick(line[name] for line in same) for name, pick in _WORST.items()},
            "runs": len(same),
        }
        for same in found.values()
    ]


def page(rows: Sequence[_Line]) -> str:
    """Returns the page's text."""
    sections: dict[str, list[_Line]] = {}
    for row in rows:
        sections.setdefault(row["section"], []).append(row)
    tables = [
        "\n".join([f"\n## {section}\n", _HEADER, *map(_row, members)]) for section, members in sections.items()
    ]
    return _INTRO.format(runs=_runs(rows)) + "\n".join(tables) + "\n"


def _runs(rows: Sequence[_Line]) -> str:
    counts = sorted(Counter(row["runs"] for row in rows).items(), reverse=True)
    return " and ".join(
        f"{count} {'row' if count == 1 else 'rows'} {'once' if runs == 1 else f'{runs} times'}"
        for runs, count in counts
    )


def _row(row: _Line) -> str:
    failed = str(row["failed"])
    if row["dead_lettered"]:
        failed += f", and {row['dead_lettered']} dead-lettered"
    recovery = "" if row["recovery"] is None else f"{row['recovery']:.2f} s"
    fault = row["fault"]
    cells = [
        fault[0].upper() + fault[1:],
        *(str(row[name]) for name in ("messages", "acknowledged")),
        failed,
        *(str(row[name]) for name in ("lost", "duplicated", "hedges")),
        recovery,
        f"`{row['test'].removeprefix(FOLDER + '/')}`",
    ]
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |".replace("|  |", "| |")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the tests and writes the page.

    Args:
        arguments: The command line. Default: that of the process.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.reliability", description=__doc__)
    parser.add_argument(
        "--repeat",
        type=int,
        default=1,
        help="how often tests under 2 s run, the others at most 3 times; default 1",
    )
    PAGE.write_text(page(worst(repeat(parser.parse_args(arguments).repeat))), encoding="utf-8")
    print(f"Wrote {PAGE.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
