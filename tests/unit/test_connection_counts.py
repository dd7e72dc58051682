"""What happened to the connections is counted once, by whoever asks first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from beam_hedge.connection_counts import ConnectionCounts


def test_each_event_is_taken_once() -> None:
    """Bundles that share a publisher do not count the same suspicion twice."""
    counts = ConnectionCounts()
    assert counts.take() == {}
    counts.suspected += 3
    counts.replaced += 1
    assert counts.take() == {"connections_suspected": 3, "connections_replaced": 1}
    assert counts.take() == {}
    counts.suspected += 1
    assert counts.take() == {"connections_suspected": 1, "connections_replaced": 0}


def test_bundles_on_many_threads_take_all_of_it_together() -> None:
    """However bundles end at the same time, the sum of what they report is what happened."""
    counts = ConnectionCounts()
    with ThreadPoolExecutor(4) as pool:
        taken = [pool.submit(counts.take) for _ in range(100)]
        for _ in range(1000):
            counts.suspected += 1
        taken += [pool.submit(counts.take) for _ in range(100)]
    assert sum(each.result().get("connections_suspected", 0) for each in taken) == 1000
