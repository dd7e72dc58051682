"""The demonstration's data: the airports of the United States, as vega_datasets ships them."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING

from vega_datasets import local_data

if TYPE_CHECKING:
    from collections.abc import Iterator


def write_airports(path: Path, limit: int | None = None) -> list[bytes]:
    """Writes a JSON line for each airport.

    Args:
        path: The file to write.
        limit: How many airports to take. Default: all.

    Returns:
        The lines, without their ends. No two are equal: each holds its airport's own `iata` code.
    """
    lines = [json.dumps(row).encode() for row in itertools.islice(_rows(), limit)]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return lines


def _rows() -> Iterator[dict[str, str]]:
    with Path(local_data.airports.filepath).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
