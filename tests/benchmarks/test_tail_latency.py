"""The tail: workloads, the limit beside them, and figures of several runs."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import pytest

from beam_hedge.testing import LatencyProfile
from benchmarks import tail_latency
from benchmarks.disturbances import Brownout
from benchmarks.limit import limit
from benchmarks.tail_latency import HEDGED, LIMIT, PLAIN, Load, Measured, draw, measure, rows
from benchmarks.workloads import WORKLOADS, Workload, lognormal

if TYPE_CHECKING:
    from pathlib import Path

MEASURED = {
    PLAIN: [Measured([5.0] * 98 + [300.0, 4000.0], 0.0) for _ in range(3)],
    HEDGED: [Measured([5.0] * 98 + [most, most], extra, 0.1) for most, extra in ((110, 5), (105, 4), (120, 6))],
    LIMIT: [Measured([5.0] * 98 + [100.0, 100.0], 5.25) for _ in range(3)],
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_is_a_profile(name: str) -> None:
    """Each workload that can be asked for can be served."""
    assert LatencyProfile.parse(WORKLOADS[name].profile).parts


def test_a_log_normal_profile_has_its_quantiles() -> None:
    """The tail of the log-normal workload is the one that its page names."""
    seconds = [each for _, each in LatencyProfile.parse(lognormal(0.01, 1.2)).parts]
    assert statistics.median(seconds) == pytest.approx(0.01, rel=0.01)
    assert statistics.quantiles(seconds, n=100)[98] == pytest.approx(0.163, rel=0.02)
    assert seconds == sorted(seconds)


def test_a_brownout_is_the_middle_of_what_is_measured() -> None:
    """A brownout begins and ends within the measurement, and only then are all requests slow."""
    brownout = Workload("", "none", 0.4).middle(warm_up=5, duration=30)
    assert [brownout.at_least(now) for now in (0, 16.9, 17, 22.9, 23, 40)] == [0, 0, 0.4, 0.4, 0, 0]
    assert Workload("", "none").middle(5, 30).at_least(18) == 0


def test_the_limit_knows_the_brownout() -> None:
    """Nobody can be quicker than a server that is slow for all."""
    brownout = Brownout(1.0, 1.0, 0.25)
    assert limit([0.0, 1.0, 2.0], [0.0625], 0.125, brownout.at_least) == ([0.0625, 0.25, 0.0625], [1, 2, 1])


def test_runs_are_compared_with_their_own_limit() -> None:
    """A run in which the server drew bad latencies is not held against the publisher."""
    hedged = next(line for line in rows(MEASURED) if line["name"] == HEDGED)
    assert (hedged["p999_ms"], hedged["p999_ms_least"], hedged["p999_ms_most"]) == (110, 105, 120)
    assert hedged["p999_to_limit"] == pytest.approx(1.1)
    assert (hedged["extra_percent"], hedged["requests"]) == (5, 100)
    assert hedged["late_p99_ms"] == pytest.approx(0.1)


def test_headlines_say_what_hedging_does() -> None:
    """A picture of a tail tells how much shorter it is, and one of a brownout that hedging stops."""
    assert "110 ms; without, 300 ms" in draw(MEASURED, Workload("", "none")).texts[0].get_text()
    assert "5.0 % more requests" in draw(MEASURED, Workload("", "none", 0.4)).texts[0].get_text()


def test_a_brownout_is_served() -> None:
    """In a brownout all requests are slow, and before and after it none is."""
    workload = Workload("", "none", brownout=0.3)
    run, least = measure(None, workload, Load(rate=50, warm_up=0.1, duration=2.0), seed=1)
    assert len(run.latencies_ms) == 100
    assert run.latencies_ms[0] < 300 <= run.latencies_ms[-1]
    assert least.latencies_ms == pytest.approx([0.0] * 80 + [300.0] * 20)


def test_the_whole_program_leaves_a_report_for_each_workload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command gives the tail with and without hedging, beside its limit."""
    amounts = ["--runs", "1", "--warm_up", "0.1", "--duration", "0.3"]
    out = ["--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["tail_latency", "--workloads", "lognormal", *amounts, *out])
    tail_latency.main()
    assert {path.name for path in tmp_path.iterdir()} == {
        f"tail_latency_lognormal.{kind}" for kind in ("csv", "md", "png")
    }
    page = (tmp_path / "tail_latency_lognormal.md").read_text(encoding="utf-8")
    assert all(f"| {name} | 60 |" in page for name in (PLAIN, HEDGED, LIMIT))
