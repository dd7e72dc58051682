"""Leases: one publisher for a configuration, as long as somebody uses it and a linger longer."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from tests.unit.leasing import LINGER, Leasing, publisher_of

if TYPE_CHECKING:
    import pytest


def test_equal_configurations_share_a_publisher() -> None:
    """All DoFns of a sink in a worker process publish through one publisher and one budget."""
    leasing = Leasing()
    first, second = leasing.acquire(), leasing.acquire()
    assert publisher_of(first) is publisher_of(second) is leasing.made[0]
    assert len(leasing.made) == 1


def test_other_configurations_have_publishers_and_buckets_of_their_own() -> None:
    """What is published with other settings neither spends nor fills another sink's budget."""
    leasing = Leasing()
    leases = [leasing.acquire(connections) for connections in (1, 2, 3)]
    assert [publisher.config.connections for publisher in leasing.made] == [1, 2, 3]
    assert len({id(publisher.bucket) for publisher in leasing.made}) == len(leases)


def test_each_emulator_has_a_publisher_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test suite that starts one emulator after the other is not sent to the one that is gone."""
    leasing = Leasing()
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:1")
    first = leasing.acquire()
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:2")
    second = leasing.acquire()
    assert publisher_of(first) is not publisher_of(second)
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:1")
    assert publisher_of(leasing.acquire()) is publisher_of(first)


def test_a_publisher_closes_a_linger_after_its_last_lease() -> None:
    """Connections of a sink that nobody uses are closed in the end, and not before their time."""
    leasing = Leasing()
    first, second = leasing.acquire(), leasing.acquire()
    first.release()
    leasing.clock.advance(10 * LINGER)
    [publisher] = leasing.open
    second.release()
    leasing.clock.advance(LINGER - 0.001)
    assert publisher.usable
    leasing.clock.advance(0.001)
    assert publisher.closed_at == [11 * LINGER]
    assert leasing.clock.pending() == 0


def test_a_lease_within_the_linger_keeps_the_publisher_open() -> None:
    """A runner that makes a DoFn for each bundle opens no connections for each of them."""
    leasing = Leasing()
    leasing.acquire().release()
    leasing.clock.advance(LINGER - 1)
    held = leasing.acquire()
    leasing.clock.advance(10 * LINGER)
    [publisher] = leasing.made
    assert publisher.usable
    assert publisher_of(held) is publisher


def test_the_linger_begins_anew_with_each_last_release() -> None:
    """Bundles that come every now and then find the connections open, however many went before."""
    leasing = Leasing()
    for _ in range(5):
        leasing.acquire().release()
        leasing.clock.advance(LINGER - 1)
    [publisher] = leasing.made
    assert publisher.usable
    leasing.clock.advance(1)
    assert publisher.closed_at == [5 * (LINGER - 1) + 1]
    leasing.clock.advance(LINGER)
    assert len(publisher.closed_at) == 1


def test_releasing_twice_is_releasing_once() -> None:
    """A DoFn that is torn down twice does not end the lease of another one."""
    leasing = Leasing()
    first = leasing.acquire()
    first.release()
    other = leasing.acquire()
    first.release()
    del first
    gc.collect()
    leasing.clock.advance(2 * LINGER)
    assert leasing.open == leasing.made
    assert publisher_of(other).usable


def test_a_lease_that_is_garbage_has_ended() -> None:
    """A runner that drops a DoFn without teardown does not keep connections open for ever."""
    leasing = Leasing()
    lease = leasing.acquire()
    leasing.clock.advance(5)
    del lease
    gc.collect()
    leasing.clock.advance(LINGER)
    assert [publisher.closed_at for publisher in leasing.made] == [[5 + LINGER]]


def test_a_lease_that_is_in_use_is_not_ended_by_others_that_are_garbage() -> None:
    """Dropped DoFns take nothing from the one that still publishes."""
    leasing = Leasing()
    held = leasing.acquire()
    for _ in range(100):
        leasing.acquire()
    gc.collect()
    leasing.clock.advance(2 * LINGER)
    assert publisher_of(held).usable
    held.release()
    leasing.clock.advance(LINGER)
    assert leasing.open == []


def test_the_bucket_outlives_the_publisher() -> None:
    """A pause between bundles does not cost the tokens that they earned."""
    leasing = Leasing()
    leasing.acquire().release()
    leasing.made[0].bucket.refill()
    leasing.clock.advance(LINGER)
    again = leasing.acquire()
    first, second = leasing.made
    assert publisher_of(again) is second
    assert first.closed_at == [LINGER]
    assert second.usable
    assert second.bucket is first.bucket
    assert second.bucket.milli_tokens == 100
