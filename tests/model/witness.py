"""What a witness of all that is published and sent knows, and what it objects to at the moment of a send."""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc
from google.pubsub_v1.types import PublishRequest

from beam_hedge.errors import PublishError
from beam_hedge.interfaces import Refusal
from beam_hedge.settings import seconds

if TYPE_CHECKING:
    import concurrent.futures

    from beam_hedge.batch import Batch
    from beam_hedge.outcome import PublishOutcome
    from beam_hedge.publisher import HedgingPublisher
    from beam_hedge.settings import HedgingSettings, RetrySettings
    from beam_hedge.token_bucket import TokenBucket
    from tests.model.process import VirtualChannels
    from tests.unit.fakes import FakeCall

CLOSE = 1e-6
_SIZE = "message larger than max"
_RETRIED = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
)


@dataclass(eq=False)
class Published:
    """A batch that a caller has published.

    Attributes:
        number: Its messages' data begin with it.
        publisher: Who took it.
        payload: A weak reference to the batch.
        messages: How many messages it has.
        size: Bytes of its own request.
        at: When it was accepted.
        future: What the caller got.
        done: When the future was done; at most once.
        judged: Whether its result has been looked at.
        request: The newest request that carried it.
    """

    number: int
    publisher: HedgingPublisher
    payload: weakref.ref[Batch]
    messages: int
    size: int
    at: float
    future: concurrent.futures.Future[PublishOutcome]
    done: list[float] = field(default_factory=list)
    judged: bool = False
    request: Request | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """What a server calls its messages."""
        return tuple(f"id of {self.number}.{index}" for index in range(self.messages))


@dataclass(eq=False)
class Request:
    """All attempts with the same bytes.

    Attributes:
        channels: The connections that it goes out on.
        batches: Whose messages it carries.
        payload: A weak reference to the batch that is sent.
        ids: What the server answers.
        began: When the total timeout of its batches began: with the first request that they were in.
        calls: Its attempts, in their order.
    """

    channels: VirtualChannels
    batches: list[Published]
    payload: weakref.ref[Batch]
    ids: tuple[str, ...]
    began: float
    calls: list[FakeCall] = field(default_factory=list)

    @property
    def started(self) -> float:
        """When it was first sent."""
        return self.calls[0].sent_at

    @property
    def originals(self) -> list[FakeCall]:
        """The original and its retries."""
        return [call for call in self.calls if not call.hedge]

    @property
    def bucket(self) -> TokenBucket:
        """Whose tokens its hedges cost."""
        return self.batches[0].publisher.token_bucket

    @property
    def hedges(self) -> list[FakeCall]:
        """The hedges."""
        return [call for call in self.calls if call.hedge]

    @property
    def open(self) -> bool:
        """Whether somebody still waits for it."""
        return any(not each.done and each.request is self for each in self.batches)

    def succeeded(self, call: FakeCall) -> bool:
        """Whether the server has answered a call as it should."""
        return not call.out and not call.cancelled() and call.result() == self.ids

    @property
    def stored(self) -> bool:
        """Whether any call was answered as it should be."""
        return any(self.succeeded(call) for call in self.calls)


def is_final(call: FakeCall) -> bool:
    """Whether a call's end is one that no retry can mend."""
    if call.cancelled():
        return False
    answer = call.result()
    return not isinstance(answer, Refusal) or answer.status not in _RETRIED or _SIZE in answer.details


class Witness:
    """Sees all requests.

    Args:
        settings: When hedges may be sent.
        retry: When retries may be.

    Attributes:
        published: All batches, by their numbers.
        unsettled: Those that have no outcome, or attempts that are still ending.
        active: The requests of which that is true.
        hedges: How many hedges were sent, by bucket.
        stored: How many requests the server has answered as it should, by bucket.
        told: How many outcomes callers got that are not parts of others, by bucket.
    """

    def __init__(self, settings: HedgingSettings, retry: RetrySettings) -> None:
        self.delay = seconds(settings.hedge_delay)
        self.retry = retry
        self.published: list[Published] = []
        self.unsettled: list[Published] = []
        self.active: list[Request] = []
        self.hedges: Counter[TokenBucket] = Counter()
        self.stored: Counter[TokenBucket] = Counter()
        self.told: Counter[TokenBucket] = Counter()
        self._tried: dict[tuple[VirtualChannels, int], float] = {}

    def longest_wait(self, retries: int) -> float:
        """The longest wait before the next retry."""
        grown = seconds(self.retry.initial_retry_delay) * self.retry.retry_delay_multiplier**retries
        return min(grown, seconds(self.retry.max_retry_delay))

    def ids_of(self, call: FakeCall) -> tuple[str, ...]:
        """Returns what the server answers to a call."""
        return next(request.ids for request in self.active if call in request.calls)

    def forget(self) -> None:
        """Lets go of what an engine that dies has to do; what callers are told of it is looked at still."""
        for request in self.active:
            self.stored[request.bucket] += request.stored
        self.active.clear()

    def sent(self, channels: VirtualChannels, call: FakeCall, batch: Batch, suspects: set[int]) -> None:
        """Notes an attempt, and objects if it should not have been sent."""
        request = self._request_of(channels, call, batch)
        before = list(request.calls)
        request.calls.append(call)
        total = seconds(self.retry.total_timeout)
        assert 0 < call.timeout <= request.began + total - call.sent_at + CLOSE, "it outlives its batch"
        assert any(not each.done or each.done[0] == call.sent_at for each in request.batches), (
            "sent although nobody waits"
        )
        assert not any(request.succeeded(earlier) for earlier in before), "sent although it is stored"
        if call.hedge:
            self.hedges[request.bucket] += 1
            self._check_hedge(request, before, call, suspects)
        else:
            assert call.timeout <= seconds(self.retry.initial_rpc_timeout) + CLOSE, "too long a deadline"
            self._check_original(request, before, call, suspects)

    def _request_of(self, channels: VirtualChannels, call: FakeCall, batch: Batch) -> Request:
        messages = PublishRequest.pb().FromString(call.request).messages
        assert len(messages) == batch.messages
        data = [message.data.decode() for message in messages]
        batches = [self.published[number] for number in dict.fromkeys(int(text.split(".")[0]) for text in data)]
        known = batches[0].request
        if known is None or known.batches != batches:
            began = call.sent_at if known is None else known.began
            ids = tuple(f"id of {text}" for text in data)
            known = Request(channels, batches, weakref.ref(batch), ids, began)
            self.active.append(known)
            for each in batches:
                each.request = known
        assert not known.calls or known.calls[0].request == call.request, "attempts differ"
        return known

    def _check_hedge(
        self, request: Request, before: list[FakeCall], call: FakeCall, suspects: set[int]
    ) -> None:
        assert call.timeout <= 10 + CLOSE, "a hedge waits 10 s at most"
        clock_from = [each.sent_at for each in before if each.hedge] or [request.started]
        assert call.sent_at >= clock_from[-1] + self.delay - CLOSE, "a hedge before its time"
        assert call.hedge == 1 + sum(each.hedge > 0 for each in before), "hedges are counted wrongly"
        taken = {each.connection for each in before if each.out}
        free = {each.number for each in request.channels.known} - taken
        if free:
            assert call.connection in free, "a hedge shares a connection with its own batch"
            assert call.connection not in suspects or free <= suspects, "a hedge on a connection that is silent"

    def _check_original(
        self, request: Request, before: list[FakeCall], call: FakeCall, suspects: set[int]
    ) -> None:
        originals = [each for each in before if not each.hedge]
        if originals:
            last = originals[-1]
            assert last.ended_at is not None, "a retry of what is still out"
            assert not is_final(last), "a retry of what cannot be mended"
            longest = self.longest_wait(len(originals) - 1)
            waited = call.sent_at - last.ended_at
            assert longest / 2 - CLOSE <= waited <= longest + CLOSE, "a retry outside its wait"
            assert call.connection != last.connection or len(request.channels.known) == 1, "retried in place"
        elif call.connection in suspects and len(suspects) < len(request.channels.known):
            key = (request.channels, call.connection)
            assert call.sent_at - self._tried.get(key, -9) >= 1 - CLOSE, "originals flow to a silent connection"
            self._tried[key] = call.sent_at


def check_result(published: Published) -> None:
    """Objects to a result that the caller should not have got."""
    future = published.future
    if future.cancelled():
        return
    request = published.request
    error = future.exception()
    if isinstance(error, PublishError):
        assert request is not None, "failed without having been sent"
        assert all(call.cancelled_at is None and not call.out for call in request.originals), (
            "failed although the original is out"
        )
        # An answer that came later, while it was being cancelled, is nobody's fault.
        stored_at = [call.ended_at for call in request.calls if request.succeeded(call)]
        assert not any(at is not None and at < published.done[0] for at in stored_at), (
            "failed although it is stored"
        )
        assert error.messages == published.messages
    elif error is None:
        outcome = future.result()
        assert request is not None
        assert request.stored, "published without an answer"
        assert outcome.message_ids == published.ids, "another caller's ids"
        assert abs(outcome.latency - (published.done[0] - published.at)) < CLOSE, "a wrong latency"
        assert (outcome.messages, outcome.request_bytes) == (published.messages, published.size)
