"""A thousand bundles on sixteen threads while the service refuses some of their requests."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import grpc

from beam_hedge import HedgingSettings, RetrySettings
from beam_hedge.add_ids import _with_id
from beam_hedge.testing import NEVER, Reply
from tests.beam.pipelines import batches_of, make_fn
from tests.beam.truth_trying import Storm
from tests.server.serving import TOPIC, serving

if TYPE_CHECKING:
    from beam_hedge.testing import RequestRecord

SEED = 20_260_901
BUNDLES = 1000
THREADS = 16
SETTINGS = HedgingSettings(hedge_delay=0.1, initial_tokens=50, refill_ratio=0.1)
RETRY = RetrySettings(initial_rpc_timeout=5, initial_retry_delay=0.01, max_retry_delay=0.05)

# A tenth of the calls get one of these. Half of them store the messages first: the answer is lost.
REFUSALS = [
    Reply(status=status, stored=stored)
    for status in (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.FAILED_PRECONDITION,
    )
    for stored in (False, True)
]


def misfortune(record: RequestRecord) -> Reply | None:
    """Draws what becomes of a call, by its number."""
    draw = random.Random(f"{SEED} {record.number}")
    if draw.random() < 0.1:
        return draw.choice(REFUSALS)
    # A few originals are not answered, so that hedges are in the game.
    return NEVER if draw.random() < 0.01 and not record.hedged_attempt_count else None


def make_bundles() -> list[list[Any]]:
    """Makes bundles of one to five elements, most of one, with ids as the step before the write gives them."""
    draw = random.Random(SEED)
    return [
        [_with_id(b"%d %d" % (bundle, number)) for number in range(draw.choice([1, 1, 1, 2, 5]))]
        for bundle in range(BUNDLES)
    ]


def test_every_input_is_stored_and_its_copies_can_be_told() -> None:
    """However often bundles fail, all is there in the end, and what is there twice has the same id."""
    bundles = make_bundles()
    ids = {data: message_id for bundle in bundles for message_id, data in bundle}
    storm = Storm(
        lambda: make_fn(SETTINGS, id_label="id", retry_settings=RETRY, batch_settings=batches_of(3)), SEED
    )
    with serving(misfortune) as server:
        storm.run(bundles, THREADS, 100)
        ledger = server.wait_for(lambda ledger: not ledger.open)
        found = defaultdict(set)
        for message in server.messages(TOPIC):
            found[message.data].add(message.attributes["id"])
        published = Counter(record.status for record in server.requests)[grpc.StatusCode.OK]
    assert found == {data: {message_id} for data, message_id in ids.items()}
    assert len(set(ids.values())) == len(ids)
    # It was no fair weather: bundles failed, copies were stored, hedges were sent, within their budget.
    assert storm.failed_tries > BUNDLES * 0.02
    assert ledger.messages > len(ids)
    assert 0 < ledger.hedges <= SETTINGS.initial_tokens + SETTINGS.refill_ratio * published
