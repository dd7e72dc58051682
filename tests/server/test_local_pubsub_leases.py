"""When and in which order a subscription delivers, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from beam_hedge.testing import FakeClock, RefusedError
from beam_hedge.testing.leases import Flow
from beam_hedge.testing.topics import Topics
from tests.server.conftest import TOPIC, request

if TYPE_CHECKING:
    from beam_hedge.testing.leases import Lease
    from beam_hedge.testing.subscription import Subscription

NAME = "projects/p-test/subscriptions/s"


class Bench:
    """Topics in virtual time, with one topic and one subscription."""

    def __init__(self, *, ordered: bool = False) -> None:
        self.clock = FakeClock()
        self.topics = Topics(clock=self.clock.time)
        self.topics.create(TOPIC)
        self.subscription: Subscription = self.topics.subscribe(NAME, TOPIC, ordered=ordered)
        self.calls = 0

    def store(self, *data: bytes, key: str = "") -> None:
        """Stores one request."""
        self.calls += 1
        self.topics.store(TOPIC, request(*data, ordering_key=key), len(data), self.calls)

    def take(self, most: int = 100, flow: Flow | None = None) -> list[Lease]:
        """Takes what is ready."""
        return self.subscription.take(most, flow or Flow())


def data(leases: list[Lease]) -> list[bytes]:
    """Returns the payloads of leased messages."""
    return [lease.message.data for lease in leases]


def test_a_message_that_is_not_acknowledged_comes_again_at_its_deadline() -> None:
    """Users lose no message with a subscriber that died."""
    bench = Bench()
    bench.store(b"a")
    assert data(bench.take()) == [b"a"]
    bench.clock.advance(9.9)
    assert bench.take() == []
    bench.clock.advance(0.1)
    assert data(bench.take()) == [b"a"]


def test_a_longer_deadline_holds_a_message_back() -> None:
    """Users can work on a message longer than the subscription allows at first."""
    bench = Bench()
    bench.store(b"a")
    (lease,) = bench.take()
    bench.clock.advance(9)
    bench.subscription.modify_deadline(lease.ack_id, 60)
    bench.clock.advance(59.9)
    assert bench.take() == []
    bench.clock.advance(0.1)
    assert data(bench.take()) == [b"a"]


def test_a_shorter_deadline_brings_a_message_back_earlier() -> None:
    """Users can give a message up before its deadline."""
    bench = Bench()
    bench.store(b"a")
    (lease,) = bench.take()
    bench.subscription.modify_deadline(lease.ack_id, 2)
    bench.clock.advance(2)
    assert data(bench.take()) == [b"a"]


def test_an_acknowledgement_after_the_deadline_is_too_late() -> None:
    """Users see the duplicate that a slow subscriber gets from the real service as well."""
    bench = Bench()
    bench.store(b"a")
    (late,) = bench.take()
    bench.clock.advance(10)
    (again,) = bench.take()
    bench.subscription.acknowledge([late.ack_id])
    bench.subscription.modify_deadline(late.ack_id, 0)
    assert bench.subscription.unacknowledged == 1
    bench.subscription.acknowledge([again.ack_id, "unknown"])
    assert bench.subscription.unacknowledged == 0
    bench.clock.advance(1_000)
    assert bench.take() == []


def test_what_comes_again_comes_before_what_is_new() -> None:
    """Users get the oldest messages first."""
    bench = Bench()
    bench.store(b"a", b"b", b"c")
    bench.store(b"d")
    first, second = bench.take(2)
    bench.subscription.modify_deadline(second.ack_id, 0)
    bench.subscription.modify_deadline(first.ack_id, 0)
    assert data(bench.take()) == [b"a", b"b", b"c", b"d"]


def test_only_later_messages_reach_a_subscription() -> None:
    """Users do not read what was published before the subscription was made."""
    bench = Bench()
    bench.store(b"before")
    late = bench.topics.subscribe(NAME + "-late", TOPIC)
    bench.store(b"after")
    assert data(late.take(10, Flow())) == [b"after"]
    assert bench.subscription.unacknowledged == 2


def test_a_subscription_outlives_its_topic() -> None:
    """Users can still read what a deleted topic had taken."""
    bench = Bench()
    bench.store(b"a")
    bench.topics.delete(TOPIC)
    assert data(bench.take()) == [b"a"]
    with pytest.raises(RefusedError, match="NOT_FOUND"):
        bench.store(b"b")


@pytest.mark.parametrize(("ordered", "again"), [(True, [b"b", b"c"]), (False, [b"b"])])
def test_an_ordered_subscription_repeats_what_followed(ordered: bool, again: list[bytes]) -> None:
    """Users of ordering keys never see a later message before an earlier one for the last time."""
    bench = Bench(ordered=ordered)
    bench.store(b"a", b"b", b"c", key="k")
    bench.store(b"other", key="l")
    leases = bench.take()
    bench.subscription.modify_deadline(leases[1].ack_id, 0)
    assert data(bench.take()) == again


def test_a_stream_gets_no_more_than_it_may_hold() -> None:
    """Users of flow control are never given more messages or bytes than they asked for."""
    bench = Bench()
    bench.store(*[b"x" * 100] * 10)
    by_count = Flow(max_messages=3)
    leases = bench.take(flow=by_count)
    assert len(leases) == 3
    assert bench.take(flow=by_count) == []
    bench.subscription.acknowledge([leases[0].ack_id])
    bench.subscription.modify_deadline(leases[1].ack_id, 0)
    assert len(bench.take(flow=by_count)) == 2
    assert len(bench.take(flow=Flow(max_bytes=101))) == 1


def test_one_answer_stays_small_enough_for_any_client() -> None:
    """Users with gRPC's default limit of 4 MiB can pull large messages."""
    bench = Bench()
    bench.store(*[b"x" * 700_000] * 5)
    assert [len(bench.take()) for _ in range(4)] == [2, 2, 1, 0]


def test_the_deadline_of_a_stream_takes_the_place_of_the_subscriptions() -> None:
    """Users of streams choose how long they need for a message."""
    bench = Bench()
    bench.store(b"a")
    bench.take(flow=Flow(ack_deadline=30))
    bench.clock.advance(29)
    assert bench.take() == []
    bench.clock.advance(1)
    assert data(bench.take()) == [b"a"]
