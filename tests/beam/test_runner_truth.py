"""A bundle that fails and is tried again: all of it is published, and nothing of the failed try goes on."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge import HedgingSettings, PublishError, RetrySettings, WriteToPubSubHedged
from beam_hedge.testing import Reply
from tests.beam.collecting import create, finish, make_pipeline
from tests.beam.pipelines import batches_of, make_fn, run_bundle, run_pipeline
from tests.beam.truth_trying import WAYS, Instance, check_silence
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    from beam_hedge.testing import RequestRecord

ELEMENTS = [b"hedged", b"retried", b"denied"]

# Three hedges and no more.
HEDGED = HedgingSettings(hedge_delay=0.1, max_tokens=3, initial_tokens=3)
RETRIED = RetrySettings(initial_retry_delay=0.1, max_retry_delay=0.1)

# Longer than the delays of hedges and retries above.
A_WHILE = 0.5


@pytest.mark.parametrize("way", WAYS)
def test_the_next_try_publishes_all_and_nothing_of_the_failed_one_comes_later(way: str) -> None:
    """Each message is stored once: originals, hedges and retries that the failed try had out are given up."""
    failing, all_out, late = (threading.Event() for _ in range(3))
    failing.set()
    retries = itertools.count()

    def script(record: RequestRecord) -> Reply | None:
        if not failing.is_set():
            return None
        [message] = record.messages
        if message.data == b"denied":
            return Reply(status=grpc.StatusCode.PERMISSION_DENIED, until=all_out)
        if message.data == b"retried" and next(retries) == 0:
            return Reply(status=grpc.StatusCode.UNAVAILABLE)
        # Would be stored after the next try if anybody still waited for it then.
        return Reply(until=late)

    with serving(script, store="answer") as server, ThreadPoolExecutor(1) as pool:
        instance = Instance(lambda: make_fn(HEDGED, retry_settings=RETRIED, batch_settings=batches_of(1)))
        first = pool.submit(run_bundle, instance.write_fn, ELEMENTS)
        # Originals, hedges and one retry: there is nothing more that could be on its way.
        server.wait_for(lambda ledger: ledger.requests == 7 and ledger.open == 6, timeout=PATIENCE)
        all_out.set()
        assert isinstance(first.exception(PATIENCE), PublishError)
        del first
        failing.clear()
        instance.failed(way)
        server.wait_for(lambda ledger: not ledger.open, timeout=PATIENCE)
        run_bundle(instance.write_fn, ELEMENTS)
        late.set()
        check_silence(server, A_WHILE)
        assert Counter(message.data for message in server.messages(TOPIC)) == Counter(ELEMENTS)
        assert server.ledger().requests == 7 + 3
        instance.close()


def test_a_runner_that_tries_three_times_in_vain_publishes_each_message_once() -> None:
    """The fourth try of a real runner is whole, and the three before it have left nothing that goes on."""
    tries = {b"denied": itertools.count(), b"other": itertools.count()}
    out, last = [threading.Event() for _ in range(4)], threading.Event()

    def script(record: RequestRecord) -> Reply:
        [message] = record.messages
        number = next(tries[message.data])
        if message.data == b"other":
            out[number].set()
        elif number < 3:
            return Reply(status=grpc.StatusCode.PERMISSION_DENIED, until=out[number])
        return Reply(until=last)

    with serving(script, store="answer") as server, ThreadPoolExecutor(1) as pool:
        pipeline = make_pipeline("bundle_based")
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=batches_of(1))
        _ = create(pipeline, [b"denied", b"other"]) | transform
        running = pool.submit(finish, pipeline)
        # Only the fourth try is open: a call of an earlier one would be the third.
        server.wait_for(lambda ledger: ledger.requests == 8 and ledger.open == 2, timeout=PATIENCE)
        last.set()
        running.result(PATIENCE)
        check_silence(server, A_WHILE)
        assert Counter(message.data for message in server.messages(TOPIC)) == {b"denied": 1, b"other": 1}
        assert server.ledger().failed == {"PERMISSION_DENIED": 3}
        assert server.ledger().cancelled == 3


def test_a_repetition_that_fails_ends_the_pipeline_and_its_requests() -> None:
    """With `bundle_repeat` a failure in a repetition fails the pipeline, and nothing is published after it."""
    later = threading.Event()
    replies = {3: Reply(until=later), 4: Reply(status=grpc.StatusCode.PERMISSION_DENIED)}
    with serving(replies, store="answer") as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=batches_of(1))
        options = ["--runner=FnApiRunner", "--direct_runner_bundle_repeat=3"]
        with pytest.raises(Exception, match="PERMISSION_DENIED"):
            run_pipeline([b"a", b"b"], transform, options)
        server.wait_for(lambda ledger: not ledger.open, timeout=PATIENCE)
        later.set()
        check_silence(server, A_WHILE)
        assert sorted(message.data for message in server.messages(TOPIC)) == [b"a", b"b"]
