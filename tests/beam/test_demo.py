"""What the demonstration shows: its data, its arithmetic, its table, its picture, its progress."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING

import pytest
from matplotlib.image import imread

from beam_hedge import PublishOutcome
from beam_hedge.testing import Ledger
from demo.airports import write_airports
from demo.delivery import Delivery, compare
from demo.picture import save_picture
from demo.progress import Progress
from demo.result import Outcome, Result, percentile, read_outcomes
from demo.table import shown, table
from pipelines.outcomes import to_json

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = Result(
    outcomes=[Outcome(latency, 5, 1, 0, 0, 0, 0) for latency in [4000.0, *[5.0] * 97, 300.0, 301.0]],
    requests=100,
    publishing_s=10.04,
    wall_s=15.0,
    delivery=Delivery(lost=0, duplicates=0, foreign=0),
)
HEDGED = Result(
    outcomes=[
        *[Outcome(5.25, 5, 1, 0, 0, 0, 0)] * 96,
        Outcome(105.5, 5, 2, 1, 0, 1, 0),
        Outcome(106.0, 5, 2, 1, 0, 1, 0),
        Outcome(205.0, 5, 3, 2, 0, 0, 0),
        Outcome(299.0, 5, 1, 0, 1, 0, 0),
    ],
    requests=104,
    publishing_s=2.0,
    wall_s=7.26,
    delivery=Delivery(lost=1, duplicates=1234, foreign=0),
)


def test_the_data_is_real_and_each_line_is_unique(tmp_path: Path) -> None:
    """Loss and duplicates can be told by content, since no two lines are equal."""
    lines = write_airports(tmp_path / "airports.jsonl")
    assert (tmp_path / "airports.jsonl").read_bytes().splitlines() == lines
    rows = [json.loads(line) for line in lines]
    assert len({row["iata"] for row in rows}) == len(rows) == 3376
    assert next(row["city"] for row in rows if row["iata"] == "SFO") == "San Francisco"
    assert write_airports(tmp_path / "few.jsonl", 3) == lines[:3]


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([7.0], 50, 7.0),
        ([7.0], 100, 7.0),
        ([1.0, 2.0], 50, 1.0),
        ([1.0, 2.0], 50.1, 2.0),
        ([1.0, 2.0, 3.0], 50, 2.0),
        ([float(n) for n in range(1, 101)], 99, 99.0),
        ([float(n) for n in range(1, 101)], 99.001, 100.0),
        ([float(n) for n in range(1, 101)], 0.001, 1.0),
        ([float(n) for n in range(1, 1001)], 99.9, 999.0),
        ([float(n) for n in range(1, 677)], 99, 670.0),
    ],
)
def test_a_percentile_is_a_latency_that_occurred(values: list[float], percent: float, expected: float) -> None:
    """p99 is the smallest latency that at least 99 % of the batches do not exceed; nothing is interpolated."""
    assert percentile(values, percent) == expected


@pytest.mark.parametrize(
    ("stored", "delivery"),
    [
        ([b"a", b"b", b"c"], Delivery(0, 0, 0)),
        ([b"c", b"a", b"b"], Delivery(0, 0, 0)),
        ([b"a", b"b"], Delivery(1, 0, 0)),
        ([], Delivery(3, 0, 0)),
        ([b"a", b"b", b"c", b"a", b"a", b"c"], Delivery(0, 3, 0)),
        ([b"a", b"a", b"a"], Delivery(2, 2, 0)),
        ([b"a", b"b", b"c", b"x", b"x"], Delivery(0, 0, 2)),
    ],
)
def test_loss_and_duplicates_are_told_by_content(stored: list[bytes], delivery: Delivery) -> None:
    """A duplicate cannot make up for a lost line, as it would if messages were only counted."""
    assert compare([b"a", b"b", b"c"], stored) == delivery


def test_the_table_shows_both_runs() -> None:
    """Each number stands in its own row and column, with its unit."""
    title, _, *rows = (re.split(r" {3,}", line) for line in table(PLAIN, HEDGED).splitlines())
    assert title == ["", "without hedging", "with hedging"]
    assert {label: (plain, hedged) for label, plain, hedged in rows} == {
        "publish latency, p50": ("5.0 ms", "5.2 ms"),
        "publish latency, p90": ("5.0 ms", "5.2 ms"),
        "publish latency, p99": ("301 ms", "205 ms"),
        "publish latency, max": ("4.00 s", "299 ms"),
        "publishing, first request to last answer": ("10.0 s", "2.0 s"),
        "whole program, starting Python and Beam included": ("15.0 s", "7.3 s"),
        "batches": ("100", "100"),
        "requests": ("100", "104"),
        "extra requests": ("0 (0.0 %)", "4 (4.0 %)"),
        "hedges sent": ("0", "4"),
        "hedges won": ("0", "2"),
        "hedges throttled": ("0", "1"),
        "lost messages": ("0", "1"),
        "duplicates": ("0", "1,234"),
    }


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (4.96, "5.0 ms"),
        (99.94, "99.9 ms"),
        (100.4, "100 ms"),
        (999.4, "999 ms"),
        (1000, "1.00 s"),
        (4012, "4.01 s"),
    ],
)
def test_latencies_are_shown_with_their_unit(milliseconds: float, text: str) -> None:
    """A reader never has to guess whether a number is milliseconds or seconds."""
    assert shown(milliseconds) == text


def test_outcomes_are_read_as_the_pipeline_writes_them(tmp_path: Path) -> None:
    """The table is made of the pipeline's own words."""
    published = PublishOutcome(
        topic="projects/p/topics/t",
        message_ids=("1", "2"),
        attempts=4,
        hedges=2,
        winner=1,
        retries=1,
        latency=0.0052509,
        hedges_failed=0,
        hedges_throttled=1,
        attempts_cancelled=1,
        messages=2,
        request_bytes=99,
    )
    (tmp_path / "outcomes").write_text(f"{to_json(published)}\n", encoding="utf-8")
    (outcome,) = read_outcomes(tmp_path / "outcomes")
    assert outcome == Outcome(
        latency_ms=5.251, messages=2, attempts=4, hedges=2, hedges_throttled=1, winner=1, retries=1
    )


def test_the_picture_shows_both_runs(tmp_path: Path) -> None:
    """The picture holds a curve for each run, each in its own color, the slower one above."""
    save_picture(PLAIN, HEDGED, tmp_path / "picture.png")
    pixels = imread(tmp_path / "picture.png")[:, :, :3]
    heights = []
    for color in ("#c8402f", "#1c6f94"):
        wanted = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        matching = (abs(pixels - wanted) < 0.01).all(axis=2)
        assert matching.sum() > 1000
        heights.append(matching.nonzero()[0].min())
    # From the top: 4 s, then 0.3 s, with room for the labels between them.
    assert heights[1] - heights[0] > 150


def test_progress_is_a_line_now_and_then_in_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that nobody watches is not flooded, and still tells how far a run is."""
    now = [100.0]
    monkeypatch.setattr("demo.progress.time.monotonic", lambda: now[0])
    output = io.StringIO()
    progress = Progress(1000, output)
    for seconds, ledger in (
        (1.9, Ledger()),
        (0.1, Ledger()),
        (2.0, Ledger(requests=100, answered=96, open=4, messages=500)),
        (1.0, Ledger(requests=150, answered=150, messages=700)),
    ):
        now[0] += seconds
        progress.show(ledger)
    progress.show(Ledger(requests=210, answered=210, messages=1050), last=True)
    assert output.getvalue().splitlines() == [
        "     2.0 s  the pipeline is starting",
        "     4.0 s  [###############               ] 500 messages in 100 requests, 4 waiting for an answer",
        "     5.0 s  1,050 messages in 210 requests; the pipeline is ending",
    ]


def test_progress_is_one_line_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person sees a line that moves; a shorter state leaves nothing of a longer one behind."""
    output = io.StringIO()
    monkeypatch.setattr(output, "isatty", lambda: True)
    progress = Progress(10, output)
    progress.show(Ledger(requests=1, open=1, messages=5), last=True)
    progress.show(Ledger(), last=True)
    assert output.getvalue().count("\n") == 2
    longer, shorter = output.getvalue().split("\n")[:2]
    assert longer.startswith("\r")
    assert shorter.startswith("\r")
    assert len(shorter) >= len(longer.rstrip())
