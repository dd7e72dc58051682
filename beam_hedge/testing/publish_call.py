"""Publish calls on the server: numbered, counted, recorded, and answered as the script says."""

from __future__ import annotations

import itertools
import logging
import threading
from array import array
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
from google.protobuf.message import DecodeError
from google.pubsub_v1 import types

from beam_hedge.testing.answer import Answers, Call, CallEndedError, peer_of
from beam_hedge.testing.ledger import Books
from beam_hedge.testing.messages import PublishRequest
from beam_hedge.testing.record import Recorder, RequestRecord, is_hedge
from beam_hedge.testing.refusal import RefusedError
from beam_hedge.testing.reply import check_reply, reply_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.testing.profile import LatencyProfile
    from beam_hedge.testing.relay import Relay
    from beam_hedge.testing.reply import Reply, Script
    from beam_hedge.testing.topics import Topics

_LOGGER = logging.getLogger(__name__)
_YEAR = 365 * 86_400.0
_PublishResponse: Any = types.PublishResponse.pb()


class PublishCalls:
    """Takes publish calls.

    Owned by the server; its handler threads call `handle()`. The lock has the n-th call draw the n-th latency.

    Args:
        topics: Where messages are stored.
        profile: The latencies.
        seed: The seed of their draws.
        store_at_arrival: Whether messages are stored at arrival, or else right before the answer.
        record: How many records are kept.
        max_request_bytes: The largest request that is accepted.
        script: What becomes of the calls; it may be replaced at any time.
        relay: Returns the relay that is in front, if any.
    """

    def __init__(
        self,
        topics: Topics,
        *,
        profile: LatencyProfile,
        seed: int,
        store_at_arrival: bool,
        record: int,
        max_request_bytes: int,
        script: Script | None,
        relay: Callable[[], Relay | None],
    ) -> None:
        self._relay = relay
        self._draws = profile.draws(seed)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self.script = script
        self.books = Books()
        self.recorder = Recorder(record)
        self.latencies = array("d")
        self._answers = Answers(
            topics,
            self.books,
            store_at_arrival=store_at_arrival,
            max_request_bytes=max_request_bytes,
            relay=relay,
        )

    def handle(self, raw: bytes, context: Any) -> bytes:
        """Answers one call.

        Args:
            raw: The encoded request.
            context: Its gRPC context.

        Returns:
            The encoded response.
        """
        arrival = monotonic()
        try:
            request = PublishRequest.FromString(raw)
        except DecodeError:
            return _refuse(context, grpc.StatusCode.INVALID_ARGUMENT, "this is not a PublishRequest")
        with self._lock:
            number = next(self._numbers)
            latency = next(self._draws)
            self.latencies.append(latency)
        call = Call(number, arrival, latency, raw, request, context, peer_of(context, self._relay()))
        # Read once: it may be replaced at any time.
        script = self.script
        record = self._begin(call, keep=self.recorder.limit > 0 or callable(script))
        status: Any = None
        details = ""
        ids: tuple[str, ...] = ()
        try:
            ids = self._answers.answer(call, self._reply(script, number, record))
            status = grpc.StatusCode.OK
        except RefusedError as refusal:
            status, details = refusal.code, refusal.details
        except CallEndedError:
            return b""
        finally:
            # The record first: who waits for a count may look at the records right after.
            self.recorder.end(number, monotonic(), status, details, ids)
            self.books.end(request.topic, status)
        if status is not grpc.StatusCode.OK:
            return _refuse(context, status, details)
        serialized: bytes = _PublishResponse(message_ids=ids).SerializeToString()
        return serialized

    def _begin(self, call: Call, *, keep: bool) -> RequestRecord | None:
        metadata = dict(call.context.invocation_metadata())
        record = None
        if keep:
            record = RequestRecord(
                number=call.number,
                topic=call.request.topic,
                raw=call.raw,
                metadata=metadata,
                peer=call.peer,
                time_left=_time_left(call.context),
                arrival=call.arrival,
                latency=call.latency,
            )
            self.recorder.add(record)
        self.books.begin(call.request.topic, len(call.raw), hedge=is_hedge(metadata))
        return record

    def _reply(self, script: Script | None, number: int, record: RequestRecord | None) -> Reply:
        try:
            return check_reply(reply_to(script, number, record), can_cut=self._relay() is not None)
        except Exception as error:
            # The status is one that no client retries, so that a broken script shows at once.
            _LOGGER.exception("the script failed at publish call %d", number)
            raise RefusedError(grpc.StatusCode.FAILED_PRECONDITION, f"the script failed: {error!r}") from error


def _refuse(context: Any, status: Any, details: str) -> NoReturn:
    context.abort(status, details)
    raise AssertionError("abort() does not return")


def _time_left(context: Any) -> float | None:
    seconds: float | None = context.time_remaining()
    # gRPC tells the end of time for a call without a deadline.
    return None if seconds is None or seconds > _YEAR else seconds
