"""Growth: fits, sizes, and points that are measured while the server stalls."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import pytest

from benchmarks import scaling, scaling_points
from benchmarks.fits import fit
from benchmarks.scaling import BATCHES, MESSAGES, STALLED, stall_limit, steps
from tests.beam.pipelines import close_publishers
from tests.benchmarks.inline import Inline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def test_a_line_is_found_again() -> None:
    """Growth that is linear is told with its slope, and with an R^2 of 1."""
    line = fit([1, 10, 100], [5.0, 23.0, 203.0])
    assert (line.slope, line.intercept, line.r_squared) == pytest.approx((2, 3, 1))
    assert line.at(1000) == pytest.approx(2003)


def test_growth_that_is_not_linear_fits_worse() -> None:
    """A reader can tell quadratic growth from linear growth by R^2."""
    sizes = [1, 2_500, 5_000, 10_000]
    assert fit(sizes, [size**2 for size in sizes]).r_squared < 0.95
    assert fit(sizes, [7.0] * 4).r_squared == 1


def test_one_point_is_no_line() -> None:
    """A fit is not made up where there is none."""
    with pytest.raises(statistics.StatisticsError):
        fit([1], [1])


@pytest.mark.parametrize("parts", [MESSAGES, BATCHES, STALLED])
@pytest.mark.parametrize("quick", [True, False])
def test_the_largest_size_is_measured(parts: Sequence[float], quick: bool) -> None:
    """However short the run, the size that was asked for is in it."""
    sizes = steps(parts, 1000, quick=quick)
    assert sizes[-1] == 1000
    assert sizes == sorted(set(sizes))
    assert sizes[0] >= 1


def test_the_full_form_spans_what_is_promised() -> None:
    """A thousand to a million messages, and one to ten thousand batches in flight."""
    assert steps(MESSAGES, 1_000_000, quick=False)[0] == 1000
    assert steps(BATCHES, 10_000, quick=False)[0] == 1


def test_the_limit_is_the_smaller_of_flow_controls_two() -> None:
    """Memory is held against what may really be out: 10,000 messages of 1 KiB, not 100 MB."""
    assert stall_limit() == pytest.approx(10_000 * 1030 / 2**20)


def test_the_whole_program_leaves_three_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One command gives the figures of growth and of a stall, and batches do pile up in it."""

    def close() -> None:
        close_publishers()
        if scaling_points._publisher.cache_info().currsize:
            scaling_points._publisher().close()
            scaling_points._publisher.cache_clear()

    monkeypatch.setattr(scaling_points, "own_process", lambda: Inline(close))
    amounts = {"runs": 1, "messages": 200, "batches": 20, "stall": 1.0}
    arguments = [word for name, amount in amounts.items() for word in (f"--{name}", str(amount))]
    monkeypatch.setattr("sys.argv", ["scaling", "--quick", *arguments, "--out", str(tmp_path)])
    scaling.main()
    for name in ("scaling", "scaling_in_flight", "scaling_stall"):
        assert {path.suffix for path in tmp_path.glob(f"{name}.*")} == {".csv", ".md", ".png"}
    assert "| 20 | 20 |" in (tmp_path / "scaling_in_flight.md").read_text(encoding="utf-8")
