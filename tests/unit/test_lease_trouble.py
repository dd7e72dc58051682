"""Leases when something goes wrong: builds that fail, engines that die, threads that meet."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pytest

from beam_hedge.errors import EngineDiedError
from tests.unit.leasing import LINGER, Leasing, WatchedLock, publisher_of
from tests.unit.waiting import SECONDS, Caller

if TYPE_CHECKING:
    from beam_hedge.lease import Lease
    from tests.unit.leasing import FakePublisher

THREADS = 8


@pytest.mark.parametrize("error", [OSError("no network"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_build_that_fails_leaves_no_lease_behind(error: BaseException) -> None:
    """A worker that had no credentials for a moment can still close its connections later."""
    leasing = Leasing()

    def fail() -> None:
        raise error

    leasing.on_make = fail
    # What was raised keeps the half-made lease alive, so that only an explicit release can end it.
    with pytest.raises(type(error)) as raised:
        leasing.acquire()
    leasing.on_make = lambda: None
    leasing.acquire().release()
    leasing.clock.advance(LINGER)
    assert [publisher.closed_at for publisher in leasing.made] == [[LINGER]]
    assert raised.value is error


def test_the_next_lease_after_a_failed_build_builds_again() -> None:
    """A passing fault is over with the next bundle; nothing remembers it, and the lock is free."""
    leasing = Leasing()
    faults = [OSError("one"), OSError("two")]

    def fail_at_first() -> None:
        if faults:
            raise faults.pop(0)

    leasing.on_make = fail_at_first
    for text in ("one", "two"):
        with pytest.raises(OSError, match=text):
            leasing.acquire()
    assert publisher_of(leasing.acquire()) is leasing.made[0]


def test_a_dead_engines_publisher_is_replaced_for_all_who_hold_a_lease() -> None:
    """After the engine's thread has died the next bundles publish again, with the tokens they had earned."""
    leasing = Leasing()
    first, second = leasing.acquire(), leasing.acquire()
    dead = leasing.made[0]
    dead.engine_dies()
    assert publisher_of(first) is publisher_of(second)
    assert publisher_of(first) is leasing.made[1]
    assert len(leasing.made) == 2
    assert leasing.made[1].bucket is dead.bucket
    first.release()
    leasing.clock.advance(2 * LINGER)
    assert leasing.made[1].usable
    second.release()
    leasing.clock.advance(LINGER)
    assert leasing.made[1].closed_at == [3 * LINGER]
    assert dead.closed_at == []


def test_a_dead_engines_publisher_is_replaced_for_new_leases() -> None:
    """A new DoFn in a process whose engine has died is given a publisher that works."""
    leasing = Leasing()
    leasing.acquire().release()
    leasing.made[0].engine_dies()
    leased = leasing.acquire()
    leasing.clock.advance(2 * LINGER)
    assert publisher_of(leased) is leasing.made[1]
    assert leasing.made[1].usable


@pytest.mark.parametrize("unnoticed", [False, True])
def test_a_lease_on_a_dead_engines_publisher_can_be_released(unnoticed: bool) -> None:
    """A teardown after the engine has died, or while it dies, raises nothing."""
    leasing = Leasing()
    lease = leasing.acquire()
    [publisher] = leasing.made
    publisher.engine_dies(unnoticed=unnoticed)
    with pytest.raises(EngineDiedError):
        publisher.call_later(0, print)
    lease.release()
    leasing.clock.advance(2 * LINGER)
    assert publisher.closed_at == []


def test_a_linger_that_finds_the_lock_taken_comes_again() -> None:
    """The engine's thread never waits for a bundle that makes a publisher; closing is put off a second."""
    leasing = Leasing()
    lock = WatchedLock(leasing.registry)
    leasing.acquire().release()
    with lock:
        leasing.clock.advance(LINGER + 2.5)
        assert leasing.open == leasing.made
    leasing.clock.advance(0.499)
    assert leasing.open == leasing.made
    leasing.clock.advance(0.001)
    assert leasing.made[0].closed_at == [LINGER + 3]


def test_a_linger_can_end_while_another_publisher_is_made() -> None:
    """Making a publisher waits for the engine's thread, so that thread may not wait for it in turn."""
    leasing = Leasing()
    WatchedLock(leasing.registry)
    leasing.acquire(1).release()
    leasing.on_make = lambda: leasing.clock.advance(LINGER)
    other = leasing.acquire(2)
    assert leasing.made[0].usable
    leasing.clock.advance(1)
    assert leasing.made[0].closed_at == [LINGER + 1]
    assert publisher_of(other).usable


def test_a_lease_taken_while_a_linger_is_put_off_keeps_the_publisher() -> None:
    """A bundle that comes at the last moment gets the open connections, not ones that close under it."""
    leasing = Leasing()
    leasing.acquire(1).release()
    leasing.on_make = lambda: leasing.clock.advance(LINGER)
    held = [leasing.acquire(2), leasing.acquire(1)]
    leasing.clock.advance(10 * LINGER)
    assert leasing.open == leasing.made
    assert [publisher_of(lease) for lease in held] == leasing.made[::-1]


def test_a_lease_taken_while_the_publisher_closes_gets_another_one() -> None:
    """A bundle that starts in that very moment is never handed connections that are about to close."""
    leasing = Leasing()
    leasing.acquire().release()
    given: list[tuple[Lease, FakePublisher]] = []

    def lease_one() -> None:
        lease = leasing.acquire()
        given.append((lease, publisher_of(lease)))

    leasing.made[0].on_close = lease_one
    leasing.clock.advance(2 * LINGER)
    assert [publisher for _lease, publisher in given] == leasing.made[1:]
    assert [publisher.closed_at for publisher in leasing.made] == [[LINGER], []]


def test_threads_that_come_first_at_once_build_one_publisher() -> None:
    """Bundles that start at the same time make one client between them: two at once can hang each other."""
    leasing = Leasing()
    lock = WatchedLock(leasing.registry)

    def wait_for_all() -> None:
        # The builder has asked for the lock twice by now, the others once: nobody can come later.
        for _ in range(THREADS + 1):
            assert lock.wanted.acquire(timeout=SECONDS), "not all threads came"

    leasing.on_make = wait_for_all
    callers = [Caller(leasing.acquire) for _ in range(THREADS)]
    leases: list[Lease] = []
    for caller in callers:
        caller.join()
        assert caller.error is None
        leases.append(caller.result)  # type: ignore[arg-type]  # what acquire returns
    assert len(leasing.made) == 1
    assert {id(publisher_of(lease)) for lease in leases} == {id(leasing.made[0])}
    for lease in leases[1:]:
        lease.release()
    leasing.clock.advance(2 * LINGER)
    assert leasing.made[0].usable
    leases[0].release()
    leasing.clock.advance(LINGER)
    assert leasing.open == []


def test_threads_that_find_the_engine_dead_at_once_build_one_publisher() -> None:
    """When the engine has died, all bundles go on with one new publisher between them."""
    leasing = Leasing()
    leases = [leasing.acquire() for _ in range(THREADS)]
    leasing.made[0].engine_dies()
    lock = WatchedLock(leasing.registry)

    def wait_for_all() -> None:
        # Who asks for the lock has seen the dead publisher, and no other one.
        for _ in range(THREADS):
            assert lock.wanted.acquire(timeout=SECONDS), "not all threads came"

    leasing.on_make = wait_for_all
    callers = [Caller(functools.partial(publisher_of, lease)) for lease in leases]
    found = [caller.join().result for caller in callers]
    assert len(leasing.made) == 2
    assert found == [leasing.made[1]] * THREADS
