"""What hedging costs when nothing is slow, and what the library costs to start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import overhead
from benchmarks.overhead import AGAIN, OFF, ON, Slices, draw, ratios, take_turns

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_rounds_are_compared_one_by_one() -> None:
    """A machine that is slow for some rounds does not make hedging look dear, or cheap."""
    base = [1.0, 2.0, 40.0, 1.0, 3.0]
    found = ratios([1.1 * each for each in base], base)
    assert [found[key] for key in ("ratio", "ratio_low", "ratio_high")] == pytest.approx([1.1] * 3)
    assert found["error"] == pytest.approx(0)


def test_noise_is_told() -> None:
    """A reader can see how much of a difference is noise."""
    quiet, noisy = ([1 + spread * (number - 5) for number in range(11)] for spread in (0.01, 0.1))
    assert ratios(noisy, [1.0] * 11)["error"] == pytest.approx(10 * ratios(quiet, [1.0] * 11)["error"])
    assert ratios([1.5], [1.0])["ratio"] == 1.5


def test_publishers_take_turns_and_send_nothing_twice() -> None:
    """With nothing slow, hedging adds no request, and each publisher gets as much to do as the others."""
    found = take_turns(rounds=3, messages=2, requests=5)
    assert found.made == dict.fromkeys((OFF, ON, AGAIN), 3 * 5 * overhead._BURSTS)
    assert found.arrived == found.made
    assert all(len(cpu) == 3 and min(cpu) > 0 for cpu in found.cpu.values())


def test_the_picture_keeps_rounds_that_are_far_away() -> None:
    """A round that was disturbed is still to be seen, at the edge."""
    cpu = {OFF: [1.0, 1.0, 1.0], ON: [1.01, 1.02, 9.0], AGAIN: [1.0, 0.99, 1.0]}
    axes = draw({100: Slices(cpu, {}, {})}).axes[0]
    left, right = axes.get_xlim()
    xs: list[Any] = [x for line in axes.lines for x in line.get_xdata()]  # type: ignore[union-attr]
    assert all(left <= x <= right for x in xs)
    assert [label.get_text().rpartition(" ")[2] for label in axes.get_yticklabels()] == ["1.000", "1.020"]


def test_the_whole_program_leaves_two_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One command gives the figures of hedging and of the start, with their pictures."""

    def inline(work: Callable[..., Any], *args: object) -> Any:
        return work(*args)

    monkeypatch.setattr(overhead, "in_fresh_process", inline)
    monkeypatch.setattr(overhead, "_SIZES", {100: 2, 1: 5})
    amounts = ["--rounds", "2", "--runs", "1", "--requests", "50"]
    monkeypatch.setattr("sys.argv", ["overhead", *amounts, "--out", str(tmp_path)])
    overhead.main()
    for name in ("overhead", "start_up"):
        assert {path.suffix for path in tmp_path.glob(f"{name}.*")} == {".csv", ".md", ".png"}
    page = (tmp_path / "overhead.md").read_text(encoding="utf-8")
    # The last column is the number of extra requests.
    assert [line.split(" | ")[-1] for line in page.splitlines() if line.startswith(("| 1 |", "| 100 |"))] == [
        "0 |"
    ] * 6
    assert "| then import beam_hedge |" in (tmp_path / "start_up.md").read_text(encoding="utf-8")
