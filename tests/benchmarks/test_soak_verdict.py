"""What a soak objects to: each broken promise, planted."""

from __future__ import annotations

from collections import Counter

import pytest

from beam_hedge import HedgingSettings
from benchmarks.soaking.findings import Findings
from benchmarks.soaking.ledger import Books, Fate
from benchmarks.soaking.verdict import (
    check_budget,
    check_missing,
    check_permits,
    check_sums,
    check_tokens,
    check_waits,
)
from benchmarks.soaking.watch import MIB, Usage, growth, usage
from benchmarks.steady_memory import compare

SETTINGS = HedgingSettings(max_tokens=50, refill_ratio=0.1, initial_tokens=10)


def test_a_message_that_nobody_was_told_of_is_found() -> None:
    """A message whose caller waits for nothing, or was forgotten, is no small difference in a sum."""
    told = Counter({Fate.ACKNOWLEDGED: 90, Fate.FAILED: 5, Fate.DEAD_LETTER: 3, Fate.CANCELLED: 1})
    assert check_sums("it", Books(inputs=100, told=told, out=1, marked_out=1)) == []
    assert "100 messages went in, and 99 + 0" in check_sums("it", Books(inputs=100, told=told))[0]
    assert (
        "1 messages should be out, and 2"
        in check_sums("it", Books(inputs=100, told=told, out=1, marked_out=2))[0]
    )


def test_a_message_that_is_lost_is_found() -> None:
    """A message that is acknowledged and never seen is lost, and one that is late is not."""
    assert check_missing([0.0, 29.0]) == []
    assert check_missing([0.0, 31.0]) == ["1 messages were acknowledged and are not stored"]
    assert check_missing([0.0], most=0.0) != []


def test_one_hedge_too_many_is_found() -> None:
    """A budget is kept to the last hedge; what may have been published counts, what is out does, too."""
    books = Books(published=80, perhaps=15, out=5)
    assert check_budget("it", 20, books, SETTINGS) == []
    assert check_budget("it", 21, books, SETTINGS) == ["it: 21 hedges, and 100 published batches pay for 20"]
    # The service does not count those that do not arrive.
    assert check_budget("it", 0, Books(hedges=11), SETTINGS) != []


def test_a_bucket_out_of_bounds_is_found() -> None:
    """Tokens are neither owed nor hoarded."""
    assert [check_tokens("it", each, SETTINGS) for each in (0, 50_000)] == [[], []]
    assert check_tokens("it", -1, SETTINGS) != []
    assert check_tokens("it", 50_001, SETTINGS) != []


@pytest.mark.parametrize(
    ("permits", "idle", "found"),
    [
        ("0 batches, 0 messages, 0 B out", True, ""),
        ("2 batches, 3 messages, 500 B out", False, ""),
        ("2 batches, 3 messages, 500 B out", True, "not given back"),
        ("0 batches, 0 messages, 7 B out", True, "not given back"),
        ("-1 batches, -3 messages, -500 B out", False, "given back twice"),
        ("nothing", False, "cannot read"),
    ],
)
def test_permits_that_are_lost_are_found(permits: str, idle: bool, found: str) -> None:
    """A leak of permits blocks a publisher in the end; permits that are given twice take its bound away."""
    violations = check_permits("it", f"<HedgingPublisher <FlowController {permits}>>", idle=idle)
    assert found in violations[0] if found else violations == []


def test_a_caller_that_waits_for_ever_is_found() -> None:
    """Nothing hangs."""
    assert check_waits("it", Books(oldest=60.0), 60.0) == []
    assert check_waits("it", Books(oldest=61.0), 60.0) == [
        "it: somebody has waited for 61 s, and 60 are the most"
    ]


def series(seconds: int = 600, rss: float = 0.0, threads: float = 0.0, descriptors: float = 0.0) -> list[Usage]:
    """Makes samples of a process that goes up and down, and grows by so much a second."""
    return [
        Usage(
            float(at),
            200 * MIB + at % 7 * MIB + int(at * rss),
            17 + at % 3 + int(at * threads),
            22 + at % 5 + int(at * descriptors),
        )
        for at in range(seconds)
    ]


def test_what_grows_is_found_and_what_is_up_and_down_is_not() -> None:
    """A leak shows before it hurts, and an allocator's moods are no leak."""
    assert growth(series()) == []
    assert growth(series(20)) == []
    assert growth(series(rss=0.9 * 20 * MIB / 600)) == []
    (memory,) = growth(series(rss=1.2 * 20 * MIB / 600))
    assert memory.startswith("memory grows: 2")
    (threads,) = growth(series(threads=0.02))
    assert threads.startswith("threads grow")
    (descriptors,) = growth(series(descriptors=0.02))
    assert descriptors.startswith("descriptors grow")


def test_buffers_that_fill_at_first_are_no_growth() -> None:
    """A process that needs more after its first outage, and then no more, is flat."""
    samples = [Usage(each.at, each.rss + (50 * MIB if each.at > 100 else 0), 17, 22) for each in series()]
    assert growth(samples) == []


def test_a_short_run_may_meet_a_fault_for_the_first_time_at_its_end() -> None:
    """A connection that is replaced in the second half of a minute is no leak, and a thread a second is."""
    replaced = [Usage(float(at), 200 * MIB, 17, 24 if at > 30 else 22) for at in range(60)]
    assert growth(replaced) == []
    assert growth([Usage(float(at), 200 * MIB, 17 + at, 22) for at in range(60)]) != []


def test_this_process_can_be_looked_at() -> None:
    """The figures are those of the process, not of a field with another unit."""
    now = usage(1.5)
    assert now.at == 1.5
    assert 10 * MIB < now.rss < 100_000 * MIB
    assert 1 <= now.threads < 1000
    assert 3 <= now.descriptors < 100_000


def test_what_a_million_messages_left_is_found() -> None:
    """Memory may differ a little, threads and descriptors may not."""
    early = Usage(0.0, 200 * MIB, 11, 17)
    assert compare(early, Usage(0.0, 219 * MIB, 11, 17)) == []
    found = compare(early, Usage(0.0, 221 * MIB, 12, 18))
    assert [each.split()[0] for each in found] == ["memory", "threads", "descriptors"]


def test_a_broken_promise_is_told_once() -> None:
    """Ten minutes of the same violation are one line with its first figures."""
    findings = Findings()
    findings.object_to(["it: 21 hedges", "a thread hangs"])
    findings.object_to(["it: 22 hedges"])
    assert findings.violations == ["it: 21 hedges", "a thread hangs"]
