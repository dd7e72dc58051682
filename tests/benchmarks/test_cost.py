"""Money: what Pub/Sub charges for, and what hedging adds and saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import cost
from benchmarks.cost import Measured, balance, per_million
from benchmarks.prices import Prices, billed

if TYPE_CHECKING:
    from pathlib import Path

PRICES = Prices(tib=40.0, vcpu_hour=0.06, threads=12, subscriptions=2)


@pytest.mark.parametrize(
    ("messages", "size", "expected"),
    [(1, 10, 1000), (1, 964, 1000), (1, 965, 1001), (100, 10, 4600), (10, 1024, 10_600)],
)
def test_a_request_is_charged_by_volume_but_at_least_1000_bytes(
    messages: int, size: int, expected: int
) -> None:
    """The minimum is that of a request, not of a message, so batches of small messages are cheap."""
    assert billed(messages, size) == expected


def test_each_kind_of_cost_has_its_price() -> None:
    """Publishing and delivering cost by the TiB, and waiting by the part of a processor that a thread has."""
    requests = 2**40 / 1060
    assert PRICES.publishing(requests, 1, 1024) == pytest.approx(40)
    assert PRICES.delivering(requests, 1024) == pytest.approx(2 * 40)
    assert PRICES.waiting(12 * 3600) == pytest.approx(0.06)


def test_costs_are_those_of_a_million_messages() -> None:
    """Runs of different lengths, and batches of different sizes, can be compared."""
    one = per_million(Measured(batches=1000, requests=1050, waited=36.0), 1, PRICES)
    assert one["extra_percent"] == pytest.approx(5)
    assert one["wait"] == pytest.approx(10)
    assert one["waiting"] == pytest.approx(100 * 10 / 12 * 0.06)
    assert one["publishing"] == pytest.approx(100 * 1_050_000 * 1060 / 2**40 * 40)
    hundred = per_million(Measured(batches=1000, requests=1050, waited=36.0), 100, PRICES)
    assert hundred["publishing"] == pytest.approx(one["publishing"])
    assert hundred["waiting"] == pytest.approx(one["waiting"] / 100)


def test_what_is_added_and_what_is_saved_are_told_apart() -> None:
    """A reader sees both sides, also where hedging costs more than it saves."""
    off = {"messages": 1, "publishing": 4.0, "delivering": 8.0, "waiting": 10.0}
    on = {"messages": 1, "publishing": 4.2, "delivering": 8.4, "waiting": 3.0}
    dear = {"messages": 100, "publishing": 4.0, "delivering": 8.0, "waiting": 0.1}
    found = balance([off, on, dear, {**dear, "publishing": 5.0, "waiting": 0.2}])
    assert found[1] == pytest.approx((0.6, 7.0))
    assert found[100] == pytest.approx((1.0, -0.1))


def test_the_whole_program_leaves_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One command gives the money, with the prices that it was told and where they come from."""
    # The real one may wait four seconds for its slowest answer.
    monkeypatch.setattr(cost, "_PROFILE", "0.9:0.001,0.1:0.05")
    amounts = ["--runs", "1", "--warm_up", "0.05", "--duration", "0.05"]
    monkeypatch.setattr("sys.argv", ["cost", *amounts, "--tib", "50", "--out", str(tmp_path)])
    cost.main()
    assert {path.suffix for path in tmp_path.glob("cost.*")} == {".csv", ".md", ".png"}
    page = (tmp_path / "cost.md").read_text(encoding="utf-8")
    assert "$50 a TiB" in page
    assert "https://cloud.google.com/pubsub/pricing" in page
    assert "| 100 | on | +" in page
