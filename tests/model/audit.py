"""The account after each step: permits, budget, connections, payloads, and that nobody waits for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beam_hedge.settings import seconds
from tests.model.process import bucket_of, channels_of
from tests.model.witness import CLOSE, check_result, is_final

if TYPE_CHECKING:
    from beam_hedge.publisher import HedgingPublisher
    from tests.model.process import VirtualProcess
    from tests.model.witness import Published, Request, Witness

GRACE = 1.0


def check(witness: Witness, process: VirtualProcess) -> None:
    """Objects to whatever is wrong at a moment when the engine has nothing to do."""
    now = process.now
    assert not process.errors, process.errors
    assert not process.engine.loop.unhandled, process.engine.loop.unhandled
    for request in witness.active:
        if request.open:
            _check_open(witness, request, now)
        else:
            _check_resolved(request)
    for made in process.publishers:
        if process.works(made):
            _check_permits(witness, made, now)
            _check_connections(witness, made)
    _settle(witness)
    _check_budget(witness, process)
    if not witness.active and not witness.unsettled:
        assert process.engine.loop.timers_of_batches == 0, "timers of what has ended"


def check_end(witness: Witness, process: VirtualProcess) -> None:
    """Objects to whatever is left when all deadlines have passed."""
    assert all(len(published.done) == 1 for published in witness.published), "not exactly one outcome"
    assert not witness.unsettled, "a caller waits for ever"
    assert not witness.active, "attempts go on for ever"
    assert process.engine.loop.pending() == 0, "timers of what has ended"


def has_room(witness: Witness, made: HedgingPublisher, messages: int, limit: int) -> bool:
    """Whether flow control has to admit so many messages more."""
    held = _held(witness, made, made._engine.loop.time())
    return not held or sum(each.messages for each in held) + messages <= limit


def _held(witness: Witness, made: HedgingPublisher, now: float) -> list[Published]:
    """Lists what is out: without an outcome, or with attempts that are still ending."""
    return [each for each in witness.unsettled if each.publisher is made and _holds_permits(each, now)]


def _holds_permits(published: Published, now: float) -> bool:
    request = published.request
    if request is None or not published.done:
        return not published.done
    # Others may wait for the same bytes.
    return request.open or any(
        call.out and (call.cancelled_at is None or now - call.cancelled_at < GRACE - CLOSE)
        for call in request.calls
    )


def _check_permits(witness: Witness, made: HedgingPublisher, now: float) -> None:
    held = _held(witness, made, now)
    messages, size = sum(each.messages for each in held), sum(each.size for each in held)
    expected = f"{len(held)} batches, {messages} messages, {size} B out"
    assert expected in repr(made._flow), f"permits: {made._flow} instead of {expected}"


def _check_connections(witness: Witness, made: HedgingPublisher) -> None:
    channels = channels_of(made)
    calls = [call for each in witness.active if each.channels is channels for call in each.calls if call.out]
    for known in channels.known:
        out = sum(call.connection == known.number for call in calls)
        assert known.out == out, f"{known!r} has {out} out"


def _check_budget(witness: Witness, process: VirtualProcess) -> None:
    for bucket in process.buckets:
        assert witness.hedges[bucket] == bucket.taken, "a hedge without a token"
        most = witness.stored[bucket] + sum(each.stored for each in witness.active if each.bucket is bucket)
        assert witness.told[bucket] <= bucket.refills <= most, "not one refill for each batch that is published"


def _check_open(witness: Witness, request: Request, now: float) -> None:
    deadline = request.began + seconds(witness.retry.total_timeout)
    assert now <= deadline + CLOSE, "a batch outlives its total timeout"
    assert not request.stored, "stored, and its caller still waits"
    originals = request.originals
    last = originals[-1]
    if not last.out:
        assert last.ended_at is not None
        assert not is_final(last), "refused for good, and its caller still waits"
        longest = witness.longest_wait(len(originals) - 1)
        assert now <= last.ended_at + longest + CLOSE, "neither out nor retried: its caller waits for nothing"
    sent = [each.sent_at for each in request.hedges] or [request.started]
    due = sent[-1] + witness.delay
    if now > due + CLOSE:
        refused = bucket_of(request.batches[0].publisher).refused_at
        assert any(abs(at - due) < CLOSE for at in refused), "a late batch was not hedged"


def _check_resolved(request: Request) -> None:
    assert request.payload() is None, "the payload is held after the outcome"
    own = [each for each in request.batches if each.request is request]
    assert all(each.payload() is None for each in own), "a caller's payload is held after the outcome"
    stored_at = [call.ended_at for call in request.calls if request.succeeded(call)]
    assert not any(hedge.sent_at in stored_at for hedge in request.hedges), (
        "hedged although the answer is there"
    )
    resolved = max((each.done[0] for each in own), default=None)
    for call in request.calls:
        assert not call.out or call.cancelled_at is not None, "an attempt goes on after the outcome"
        assert None in (call.cancelled_at, resolved) or call.cancelled_at == resolved, (
            "cancelled too early or late"
        )


def _settle(witness: Witness) -> None:
    """Looks at results that are new, and lets go of what is over."""
    for published in witness.unsettled:
        assert len(published.done) == int(published.future.done()), "not exactly one outcome"
        if published.done and not published.judged:
            published.judged = True
            check_result(published)
    over = [each for each in witness.active if not each.open and not any(call.out for call in each.calls)]
    for request in over:
        witness.active.remove(request)
        witness.stored[request.bucket] += request.stored
    over_now = [
        each
        for each in witness.unsettled
        if each.done and (each.request is None or each.request not in witness.active)
    ]
    for published in over_now:
        witness.unsettled.remove(published)
        future, bucket = published.future, published.publisher.token_bucket
        if not future.cancelled() and future.exception() is None:
            witness.told[bucket] += not future.result().shared
