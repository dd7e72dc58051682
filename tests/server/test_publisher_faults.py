"""All faults at once, in no order: nothing is lost, nothing hangs, nothing is left over."""

from __future__ import annotations

import random
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge import HedgingPublisher, HedgingSettings, PublishError, RetrySettings
from beam_hedge.testing import CUT, NEVER, Reply
from tests.server.serving import PATIENCE, TOPIC, eventually, serving

if TYPE_CHECKING:
    from concurrent.futures import Future

    from beam_hedge import PublishOutcome
    from beam_hedge.testing import RequestRecord

BATCHES = 300
RETRY = RetrySettings(initial_rpc_timeout=0.5, total_timeout=50, initial_retry_delay=0.01, max_retry_delay=0.1)
HEDGED = HedgingSettings(hedge_delay=0.1, initial_tokens=50, refill_ratio=0.2)


class Faults:
    """A script in which most calls meet a fault, and one in twenty a final one."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._replies: list[Reply] = [
            *[Reply()] * 8,
            *[Reply(delay=0.1)] * 3,
            *[Reply(status=grpc.StatusCode.UNAVAILABLE)] * 3,
            *[Reply(status=grpc.StatusCode.UNAVAILABLE, delay=0.1, stored=True)] * 2,
            NEVER,
            CUT,
            Reply(status=grpc.StatusCode.INVALID_ARGUMENT),
            Reply(ids=7),
        ]

    def __call__(self, _: RequestRecord) -> Reply:
        """Draws what becomes of a call."""
        with self._lock:
            return self._random.choice(self._replies)


@pytest.mark.parametrize("settings", [HEDGED, None], ids=["hedged", "plain"])
def test_every_batch_ends_and_its_ids_are_those_of_its_messages(settings: HedgingSettings | None) -> None:
    """Whatever happens on the way, an outcome names what the service has, and all permits come back."""
    random_numbers = random.Random(7)
    with (
        serving(Faults(5), relay=True) as server,
        HedgingPublisher(TOPIC, settings, retry_settings=RETRY) as publisher,
        ThreadPoolExecutor(8) as pool,
    ):

        def publish(number: int) -> Future[PublishOutcome]:
            return publisher.publish([b"%d-%d" % (number, part) for part in range(3)])

        futures = list(pool.map(publish, range(BATCHES)))
        cancelled = {n for n in range(BATCHES) if random_numbers.random() < 0.05 and futures[n].cancel()}
        assert not wait(futures, 3 * PATIENCE).not_done
        eventually(lambda: publisher._channels.out == (0, 0))
        assert publisher._flow.batches == 0
        assert 0 <= publisher.token_bucket.milli_tokens <= 50_000
        stored = {message.message_id: message.data for message in server.messages(TOPIC)}
    published = 0
    for number, future in enumerate(futures):
        if number in cancelled:
            with pytest.raises(CancelledError):
                future.result(0)
        elif (error := future.exception(0)) is not None:
            assert isinstance(error, PublishError)
            assert error.status in {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL}
        else:
            published += 1
            ids = future.result(0).message_ids
            assert [stored[one] for one in ids] == [b"%d-%d" % (number, part) for part in range(3)]
    # Most of them, or the test would show little.
    assert published > BATCHES / 2
