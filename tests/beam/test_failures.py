"""A bundle that cannot be published: one clear error, and nothing that goes on behind the runner's back."""

from __future__ import annotations

import pickle
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import grpc
import pytest
from google.cloud.pubsub_v1.types import LimitExceededBehavior, PublishFlowControl

from beam_hedge import EngineDiedError, InvalidMessageError, PublishError, RetrySettings, WriteToPubSubHedged
from beam_hedge.testing import NEVER, Reply
from tests.beam.pipelines import RUNNERS, batches_of, make_fn, run_bundle, run_pipeline
from tests.server.serving import EAGER, PATIENCE, TOPIC, UNHURRIED, eventually, held, serving

if TYPE_CHECKING:
    from beam_hedge.testing import RequestRecord

SECRET = b"payload-that-nobody-may-see"


@pytest.mark.parametrize("runner", ["fn_api", "bundle_based", "threads"])
def test_the_pipeline_fails_with_one_clear_error(runner: str) -> None:
    """Whoever reads the log learns the topic, the status and what to do, and does not see the payload."""
    with serving() as server:
        server.delete_topic(TOPIC)
        with pytest.raises(Exception, match="NOT_FOUND") as caught:
            run_pipeline([SECRET] * 3, WriteToPubSubHedged(TOPIC, UNHURRIED), RUNNERS[runner])
    text = str(caught.value)
    assert TOPIC in text
    assert "Create the topic" in text
    assert SECRET.decode() not in text


def test_a_worker_process_reports_the_error() -> None:
    """The error survives the way from a worker process to the launching one."""
    error = PublishError(
        TOPIC,
        grpc.StatusCode.NOT_FOUND,
        "nothing there",
        messages=3,
        request_bytes=100,
        attempts=2,
        retries=1,
        hedges=0,
        hedges_failed=0,
        hedges_throttled=0,
        attempts_cancelled=0,
    )
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert (copy.status, copy.retries) == (grpc.StatusCode.NOT_FOUND, 1)


def test_what_is_out_is_cancelled_when_a_batch_fails() -> None:
    """The rest of a failed bundle is not published after the failure: the runner will try all of it again."""

    def script(record: RequestRecord) -> Reply | None:
        if record.messages[0].data == b"bad":
            return Reply(status=grpc.StatusCode.PERMISSION_DENIED, until=together)
        return NEVER

    together = threading.Event()
    with serving(script) as server, ThreadPoolExecutor(1) as pool:
        write_fn = make_fn(UNHURRIED, batch_settings=batches_of(1))
        write_fn.setup()
        bundle = pool.submit(run_bundle, write_fn, [b"good 1", b"good 2", b"bad", b"good 3"])
        server.wait_for(lambda ledger: ledger.open == 4, timeout=PATIENCE)
        together.set()
        assert isinstance(bundle.exception(PATIENCE), PublishError)
        server.wait_for(lambda ledger: not ledger.open, timeout=PATIENCE)
        assert server.ledger().cancelled == 3
        assert server.ledger().requests == 4
        write_fn.teardown()


def test_an_element_that_is_refused_cancels_what_is_out() -> None:
    """An invalid element fails the bundle in `process`; what was sent of the bundle before is cancelled."""
    with serving(NEVER) as server:
        write_fn = make_fn(UNHURRIED, batch_settings=batches_of(1))
        write_fn.setup()
        write_fn.start_bundle()
        write_fn.process(b"good")
        server.wait_for(lambda ledger: ledger.open == 1, timeout=PATIENCE)
        with pytest.raises(InvalidMessageError):
            write_fn.process(b"")
        server.wait_for(lambda ledger: ledger.cancelled == 1, timeout=PATIENCE)
        write_fn.teardown()


def test_a_dofn_that_failed_starts_clean() -> None:
    """The next bundle publishes its own elements only, and nothing that the failed one had gathered."""

    def script(record: RequestRecord) -> Reply | None:
        refused = any(message.data.isdigit() for message in record.messages)
        return Reply(status=grpc.StatusCode.PERMISSION_DENIED) if refused else None

    with serving(script) as server:
        write_fn = make_fn(UNHURRIED, batch_settings=batches_of(2))
        write_fn.setup()
        for _ in range(3):
            with pytest.raises(PublishError):
                run_bundle(write_fn, [b"1", b"2", b"3", b"4", b"5"])
            run_bundle(write_fn, [b"a", b"b", b"c"])
        stored = Counter(message.data for message in server.messages(TOPIC))
        assert stored == {b"a": 3, b"b": 3, b"c": 3}
        write_fn.teardown()


def test_a_failed_try_of_the_runner_is_made_good_by_the_next() -> None:
    """A runner that retries bundles publishes every element in the end."""
    script = {1: Reply(status=grpc.StatusCode.PERMISSION_DENIED)}
    with serving(script) as server:
        run_pipeline([b"one"], WriteToPubSubHedged(TOPIC, UNHURRIED), RUNNERS["bundle_based"])
        assert [message.data for message in server.messages(TOPIC)] == [b"one"]
        assert server.ledger().requests == 2


def test_an_early_failure_stops_the_bundle_before_its_end() -> None:
    """A bundle whose first batch has failed does not publish thousands more."""
    with serving({1: Reply(status=grpc.StatusCode.PERMISSION_DENIED)}) as server:
        write_fn = make_fn(UNHURRIED, batch_settings=batches_of(1))
        write_fn.setup()
        write_fn.start_bundle()
        write_fn.process(b"first")
        [(future, _)] = write_fn._bundle._pending
        assert isinstance(future.exception(PATIENCE), PublishError)
        with pytest.raises(PublishError):
            write_fn.process(b"second")
        server.wait_for(lambda ledger: not ledger.open, timeout=PATIENCE)
        assert server.ledger().requests <= 2
        write_fn.teardown()


def test_a_bundle_that_waits_learns_that_the_engine_died() -> None:
    """A bundle fails instead of waiting for ever, and the next one is published by a new publisher."""
    with serving() as server, ThreadPoolExecutor(1) as pool:
        write_fn = make_fn(UNHURRIED)
        write_fn.setup()
        publisher = write_fn._lease.publisher
        with held(server):
            bundle = pool.submit(run_bundle, write_fn, [b"first"])
            server.wait_for(lambda ledger: ledger.open == 1, timeout=PATIENCE)
            publisher._engine.loop.call_soon_threadsafe(publisher._engine.loop.stop)
            assert isinstance(bundle.exception(PATIENCE), EngineDiedError)
        run_bundle(write_fn, [b"second"])
        assert write_fn._lease.publisher is not publisher
        assert b"second" in {message.data for message in server.messages(TOPIC)}
        write_fn.teardown()
        publisher.close()


def test_flow_control_holds_back_process() -> None:
    """At the limit `process` waits, which is what holds back a runner, and goes on when batches come back."""
    one = PublishFlowControl(
        message_limit=1, byte_limit=10**6, limit_exceeded_behavior=LimitExceededBehavior.BLOCK
    )
    with serving() as server, ThreadPoolExecutor(1) as pool:
        write_fn = make_fn(UNHURRIED, batch_settings=batches_of(1), flow_control=one)
        write_fn.setup()
        with held(server):
            bundle = pool.submit(run_bundle, write_fn, [b"%d" % number for number in range(5)])
            eventually(lambda: write_fn._lease.publisher._flow._waiting)
            server.wait_for(lambda ledger: ledger.open == 1, timeout=PATIENCE)
            assert server.ledger().requests == 1
        bundle.result(PATIENCE)
        assert server.ledger().messages == 5
        write_fn.teardown()


def test_a_time_out_ends_the_bundle_and_its_requests() -> None:
    """A service that never answers fails the bundle within the total timeout, and no try is left behind."""
    retry = RetrySettings(initial_rpc_timeout=0.3, total_timeout=0.6, initial_retry_delay=0.01)
    with serving(NEVER) as server:
        write_fn = make_fn(EAGER, retry_settings=retry, batch_settings=batches_of(1))
        write_fn.setup()
        with pytest.raises(PublishError, match="DEADLINE_EXCEEDED"):
            run_bundle(write_fn, [b"1", b"2", b"3"])
        server.wait_for(lambda ledger: not ledger.open, timeout=PATIENCE)
        write_fn.teardown()


def test_bytes_where_messages_are_expected_are_refused_with_the_reason() -> None:
    """A source whose types Beam does not know is told what with_attributes=True takes."""
    with serving() as server:
        write_fn = make_fn(UNHURRIED, with_attributes=True)
        write_fn.setup()
        with pytest.raises(InvalidMessageError, match=r"with_attributes=True takes .*PubsubMessage, got bytes"):
            run_bundle(write_fn, [b"x"])
        write_fn.teardown()
        assert server.ledger().requests == 0
