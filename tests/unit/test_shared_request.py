"""Batches of several callers in one request: who may share, and what each caller is told."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import grpc
import pytest
from google.pubsub_v1.types import PublishRequest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge import PublishError, PublishOutcome
from beam_hedge.batch import Batch, seal
from beam_hedge.flow_control import Permits
from beam_hedge.shared_request import MAX_BYTES, MAX_MESSAGES, Accepted, Group, join, share_out, with_earlier

TOPIC = "projects/p-test/topics/out"
COUNTS: dict[str, Any] = {
    "attempts": 4,
    "retries": 1,
    "hedges": 2,
    "hedges_failed": 1,
    "hedges_throttled": 1,
    "attempts_cancelled": 1,
    "refusals": (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED),
}
SUMS = [name for name in COUNTS if name not in ("attempts", "refusals")]


def accepted(
    thread: int, messages: int = 1, *, topic: str = TOPIC, may_share: bool = True, at: float = 0.0
) -> Accepted:
    """Makes a batch of a thread."""
    batch = seal(topic, [b"%d" % thread] * messages)
    permits = Permits(messages, len(batch.request))
    return Accepted(concurrent.futures.Future(), batch, permits, None, may_share, at, 0, thread)


def group_of(*members: Accepted) -> Group:
    """Makes a request of several batches, which may all share one."""
    group = Group(members[0])
    idle = {member.thread: 0 for member in members}
    assert all(group.add(member, idle) for member in members[1:])
    return group


def outcome(group: Group) -> PublishOutcome:
    """Makes the outcome of a request."""
    batch = join(group.members)
    ids = tuple(map(str, range(batch.messages)))
    return PublishOutcome(
        TOPIC,
        ids,
        **COUNTS,
        winner=2,
        latency=5.0,
        messages=batch.messages,
        request_bytes=len(batch.request),
    )


def error(status: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT) -> PublishError:
    """Makes the error of a request."""
    return PublishError(TOPIC, status, "no", messages=9, request_bytes=99, **COUNTS)


def test_threads_that_wait_for_each_batch_share() -> None:
    """Small bundles that are found waiting together cost one request."""
    batch = join(group_of(accepted(1), accepted(2), accepted(3, 2)).members)
    assert batch.messages == 4
    parsed = PublishRequest.pb().FromString(batch.request)
    assert parsed.topic == TOPIC
    assert [message.data for message in parsed.messages] == [b"1", b"2", b"3", b"3"]


@pytest.mark.parametrize(
    ("out", "why"),
    [
        ({1: 0}, "the second thread has never published"),
        ({2: 0}, "the first thread has never published"),
        ({1: 0, 2: 1}, "the second thread has a batch out"),
        ({1: 1, 2: 0}, "the first thread has a batch out"),
    ],
)
def test_threads_that_may_not_wait_do_not_share(out: dict[int, int], why: str) -> None:
    """Who publishes several batches before waiting gets one request for each."""
    assert not Group(accepted(1)).add(accepted(2), out), why


@pytest.mark.parametrize(
    "other",
    [
        accepted(1),
        accepted(2, topic="projects/p-test/topics/another"),
        accepted(2, may_share=False),
        accepted(2, MAX_MESSAGES),
    ],
)
def test_what_does_not_fit_goes_alone(other: Accepted) -> None:
    """A request holds one batch of a thread, one topic and at most 100 messages."""
    assert not Group(accepted(1)).add(other, {1: 0, 2: 0})


def test_a_batch_that_must_be_alone_takes_no_company() -> None:
    """A batch of a bundle that has filled others before has its own request."""
    assert not Group(accepted(1, may_share=False)).add(accepted(2), {1: 0, 2: 0})


def test_a_shared_request_has_a_megabyte_at_most() -> None:
    """Sharing makes no request larger than batching by default does."""
    size = MAX_BYTES - 10
    batch = Batch(TOPIC, b"x" * size, 1)
    large = Accepted(concurrent.futures.Future(), batch, Permits(1, size), may_share=True)
    assert not Group(large).add(accepted(2), {large.thread: 0, 2: 0})


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    gone=st.sets(st.integers(0, 7)),
    failed=st.booleans(),
)
def test_sums_over_callers_are_what_the_request_came_to(sizes: list[int], gone: set[int], failed: bool) -> None:
    """Each id goes to the caller whose message it is, and no attempt is counted twice."""
    members = [accepted(number, size, at=number / 10) for number, size in enumerate(sizes)]
    group = group_of(*members)
    wanted = {each.future for number, each in enumerate(members) if number not in gone}
    result = error() if failed else outcome(group)
    told = share_out(members, wanted, result)
    heard = [share for each, share in zip(members, told, strict=True) if each.future in wanted]
    for name in SUMS:
        assert sum(getattr(share, name) for share in heard) == (COUNTS[name] if heard else 0)
    assert [status for share in heard for status in share.refusals] == (
        list(COUNTS["refusals"]) if heard else []
    )
    assert sum(not share.shared for share in heard) == bool(heard)
    assert all(share.attempts == 1 + share.retries + share.hedges for share in told)
    if not failed:
        assert [share.messages for share in told] == sizes
    if isinstance(result, PublishOutcome):
        found = [share for share in told if isinstance(share, PublishOutcome)]
        assert tuple(message_id for share in found for message_id in share.message_ids) == result.message_ids
        assert [share.latency for share in found] == pytest.approx([5 - each.at for each in members])
        assert [share.winner for share in found if share.shared] == [0] * sum(s.shared for s in found)


def test_a_single_caller_is_told_all() -> None:
    """A batch that was alone in its request hears exactly what became of it."""
    group = group_of(accepted(1))
    result = outcome(group)
    assert share_out(group.members, {group.members[0].future}, result) == [result]


def test_attempts_of_a_refused_request_are_kept() -> None:
    """A batch that was sent again on its own tells of both requests, as the service has seen them."""
    result = with_earlier(outcome(group_of(accepted(1))), error())
    assert (result.attempts, result.retries, result.hedges) == (8, 1 + 2, 4)
    assert result.attempts == 1 + result.retries + result.hedges
    assert result.refusals == COUNTS["refusals"] * 2
    both = with_earlier(error(), error())
    assert isinstance(both, PublishError)
    assert (both.attempts, both.hedges_failed, both.hedges_throttled) == (8, 2, 1)
