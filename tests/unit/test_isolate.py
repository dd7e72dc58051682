"""A refused batch: only the messages that are to blame are refused, the others are published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.errors import PublishError
from beam_hedge.isolate import Isolated, is_refusal_of_a_message, isolate
from beam_hedge.outcome import PublishOutcome

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

TOPIC = "projects/p-test/topics/out"
# What asking may cost when nothing at all is accepted: the ten that are asked alone, the parts around them,
# and one last chance for each part that is left.
MOST_IN_VAIN = 40


def refusal(
    messages: int, status: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT, details: str = "not so"
) -> PublishError:
    """Makes the error of a batch."""
    return PublishError(
        TOPIC,
        status,
        details,
        messages=messages,
        request_bytes=messages,
        attempts=1,
        retries=0,
        hedges=0,
        hedges_failed=0,
        hedges_throttled=0,
        attempts_cancelled=0,
    )


class Service:
    """Refuses each request that holds a culprit, and remembers what it was asked.

    Attributes:
        requests: What each request held, the first one included.
        stored: All messages that were published.
    """

    def __init__(self, culprits: Collection[int]) -> None:
        self._culprits = frozenset(culprits)
        self.requests: list[Sequence[int]] = []
        self.stored: list[int] = []

    def publish(self, part: Sequence[int]) -> PublishOutcome:
        """Takes a batch, or raises."""
        assert part, "a request needs a message"
        self.requests.append(part)
        if found := self._culprits.intersection(part):
            raise refusal(len(part), details=f"{min(found)} is bad")
        self.stored += part
        return PublishOutcome(
            topic=TOPIC,
            message_ids=tuple(map(str, part)),
            attempts=1,
            hedges=0,
            winner=0,
            retries=0,
            latency=0.01,
            hedges_failed=0,
            hedges_throttled=0,
            attempts_cancelled=0,
            messages=len(part),
            request_bytes=len(part),
        )

    def sort_out(self, messages: Sequence[int]) -> Isolated[int]:
        """Asks for the whole batch, and then for what can be published of it."""
        try:
            self.publish(messages)
        except PublishError as error:
            return isolate(error, messages, self.publish)
        raise AssertionError("a batch without a culprit is not refused")


def assert_sorted_out(service: Service, found: Isolated[int], messages: int, culprits: Collection[int]) -> None:
    """Fails unless each message is published or refused, once, and only the culprits are refused."""
    good = sorted(set(range(messages)) - set(culprits))
    assert sorted(message for _, message in found.refused) == sorted(culprits)
    assert all(error.messages == 1 for error, _ in found.refused)
    assert all(error.details == f"{message} is bad" for error, message in found.refused)
    assert sorted(message for _, part in found.published for message in part) == good
    assert sorted(service.stored) == good
    assert all(outcome.message_ids == tuple(map(str, part)) for outcome, part in found.published)


def test_one_culprit_in_1000_takes_at_most_22_requests_wherever_it_is() -> None:
    """One bad message costs a batch of 1,000 a handful of requests, not 1,000, at every position."""
    for culprit in range(1000):
        service = Service({culprit})
        found = service.sort_out(range(1000))
        assert len(service.requests) <= 22
        assert_sorted_out(service, found, 1000, {culprit})


@pytest.mark.parametrize("culprit", range(10))
def test_one_culprit_in_ten_takes_at_most_11_requests(culprit: int) -> None:
    """The nine others are published once each, and sorting them out costs no more than asking one by one."""
    service = Service({culprit})
    found = service.sort_out(range(10))
    assert len(service.requests) <= 11
    assert_sorted_out(service, found, 10, {culprit})


@pytest.mark.parametrize(
    "culprits", [{0, 99}, {49, 50}, {3, 5, 47, 90}, set(range(0, 100, 2)), set(range(1, 100))]
)
def test_several_culprits_are_all_found(culprits: set[int]) -> None:
    """A batch with many bad messages still loses none of its good ones."""
    service = Service(culprits)
    found = service.sort_out(range(100))
    assert_sorted_out(service, found, 100, culprits)
    # As many as a tree has nodes above its leaves: nothing is asked twice without need.
    assert len(service.requests) <= 2 * 100


@pytest.mark.parametrize("messages", [11, 12, 1000])
def test_ten_culprits_at_the_head_do_not_condemn_the_rest(messages: int) -> None:
    """A run of bad messages at the start of a batch is no reason to give up the good ones behind it."""
    culprits = set(range(10))
    service = Service(culprits)
    found = service.sort_out(range(messages))
    assert_sorted_out(service, found, messages, culprits)


@pytest.mark.parametrize("messages", [2, 3, 9, 10, 11, 12, 100, 1000])
def test_when_all_are_refused_it_gives_up_after_a_bounded_number_of_requests(messages: int) -> None:
    """If it is not the messages, the bundle fails: they are no dead letters, and the service is spared."""
    service = Service(range(messages))
    with pytest.raises(PublishError, match="INVALID_ARGUMENT") as raised:
        service.sort_out(range(messages))
    assert raised.value.messages == 1
    assert not service.stored
    assert len(service.requests) <= min(2 * messages - 1, MOST_IN_VAIN)


def test_a_single_message_is_to_blame_without_another_request() -> None:
    """A message that was alone in its batch is not sent once more to be refused once more."""
    service = Service({7})
    error = refusal(1)
    found = isolate(error, [7], service.publish)
    assert found == Isolated(published=[], refused=[(error, 7)])
    assert not service.requests


@pytest.mark.parametrize("fails_at", range(5))
@pytest.mark.parametrize("status", [grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAVAILABLE])
def test_a_part_that_fails_for_another_reason_ends_the_search(fails_at: int, status: grpc.StatusCode) -> None:
    """A topic that is deleted meanwhile fails the bundle with its own error; no message gets the blame."""
    service = Service({3})
    other = refusal(1, status)
    asked = 0

    def publish(part: Sequence[int]) -> PublishOutcome:
        nonlocal asked
        asked += 1
        if asked > fails_at:
            raise other
        return service.publish(part)

    with pytest.raises(PublishError) as raised:
        isolate(refusal(10), range(10), publish)
    assert raised.value is other
    assert asked == fails_at + 1


def test_an_error_in_the_last_chance_is_not_a_refusal_either() -> None:
    """When ten were refused and the network then fails, the bundle fails with what the network said."""
    service = Service(range(10))
    other = refusal(1, grpc.StatusCode.UNAVAILABLE)

    def publish(part: Sequence[int]) -> PublishOutcome:
        if min(part) >= 10:
            raise other
        return service.publish(part)

    with pytest.raises(PublishError) as raised:
        isolate(refusal(12), range(12), publish)
    assert raised.value is other


@pytest.mark.parametrize("status", list(grpc.StatusCode))
def test_only_an_invalid_argument_can_be_a_messages_fault(status: grpc.StatusCode) -> None:
    """A missing permission or topic makes no dead letters of good messages."""
    expected = status is grpc.StatusCode.INVALID_ARGUMENT
    assert is_refusal_of_a_message(refusal(3, status)) is expected


@given(
    st.integers(min_value=2, max_value=60).flatmap(
        lambda messages: st.tuples(
            st.just(messages), st.sets(st.integers(min_value=0, max_value=messages - 1), min_size=1)
        )
    )
)
def test_whatever_the_culprits_nothing_is_lost_and_nobody_is_blamed_wrongly(case: tuple[int, set[int]]) -> None:
    """Each message is published or a dead letter, never both, never neither; or else the whole bundle fails."""
    messages, culprits = case
    service = Service(culprits)
    try:
        found = service.sort_out(range(messages))
    except PublishError:
        # A failed bundle is tried again as a whole; nothing of it may have been stored in vain.
        assert not service.stored
        assert len(culprits) == messages or len(culprits) > 10
        assert len(service.requests) <= MOST_IN_VAIN
    else:
        assert_sorted_out(service, found, messages, culprits)
        assert len(service.requests) <= 2 * messages
