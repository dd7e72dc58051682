"""Bundles of one message on many threads, as streaming runners make them: Beam's counters, and dead letters."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from apache_beam.metrics import monitoring_infos
from apache_beam.metrics.execution import MetricsEnvironment
from apache_beam.pvalue import TaggedOutput

from beam_hedge import PublishError, RetrySettings
from beam_hedge.testing import NEVER, Reply
from tests.beam.pipelines import batches_of, make_fn
from tests.beam.workers import held_up, run_tracked, sum_of, together, working
from tests.server.serving import EAGER, PATIENCE, TOPIC, UNHURRIED, all_ended, eventually, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beam_hedge import HedgingSettings
    from beam_hedge.testing import RequestRecord
    from beam_hedge.write_fn import WriteFn

THREADS = 16
ROUNDS = 3
RETRY = RetrySettings(initial_retry_delay=0.01)


@pytest.fixture(autouse=True)
def no_earlier_calls() -> Iterator[None]:
    """Forget the calls of earlier tests: Beam counts them for the whole process."""
    MetricsEnvironment.process_wide_container().reset()
    yield
    MetricsEnvironment.process_wide_container().reset()


def calls() -> Counter[str]:
    """Returns the calls by status, as a worker reports them to its runner."""
    found: Counter[str] = Counter()
    for info in MetricsEnvironment.process_wide_container().to_runner_api_monitoring_infos(None).values():
        found[info.labels[monitoring_infos.STATUS_LABEL]] += monitoring_infos.extract_counter_value(info)
    return +found


def late(record: RequestRecord) -> Reply | None:
    """Answers the first hedge of each request and nothing else, but for the first requests of each thread."""
    return NEVER if record.messages[0].data != b"warm" and record.hedged_attempt_count != 1 else None


def every_other() -> Callable[[RequestRecord], Reply | None]:
    """Makes a script that refuses every other request, but for the first ones of each thread."""
    numbers = itertools.count()

    def script(record: RequestRecord) -> Reply | None:
        if record.messages[0].data == b"warm" or next(numbers) % 2:
            return None
        return Reply(status=grpc.StatusCode.UNAVAILABLE)

    return script


@pytest.mark.parametrize(
    ("make_script", "settings", "won", "refused"),
    [
        (lambda: None, UNHURRIED, 0, 0),
        (lambda: late, EAGER, ROUNDS, 0),
        (every_other, UNHURRIED, 0, ROUNDS),
    ],
    ids=["quick", "late", "refused"],
)
def test_counters_are_what_the_service_saw(
    make_script: Callable[[], Any], settings: HedgingSettings, won: int, refused: int
) -> None:
    """With 16 threads that share requests, no attempt and no message is counted twice or not at all."""
    with (
        serving(make_script(), store="answer") as server,
        working(lambda: make_fn(settings, retry_settings=RETRY), THREADS) as workers,
    ):
        for turn in range(ROUNDS):
            data = {worker: b"%d-%d" % (number, turn) for number, worker in enumerate(workers)}
            together(workers, data)
        requests = all_ended(server, THREADS + ROUNDS)
        ledger = server.ledger()
        stored = sorted(message.data for message in server.messages(TOPIC) if message.data != b"warm")
        found = sum_of(workers)
    assert sum(not record.hedged_attempt_count for record in requests) - found["retries"] == THREADS + ROUNDS
    bundles = THREADS * (1 + ROUNDS)
    assert found["publish_attempts"] == ledger.requests
    assert found["batches_published"] == found["messages_published"] == bundles
    assert found["hedges_sent"] == ledger.hedges
    assert found["hedges_won"] == won
    assert found["retries"] == ledger.failed.get("UNAVAILABLE", 0) == refused
    assert found["attempts_cancelled"] == ledger.requests - THREADS - ROUNDS - found["retries"]
    assert found["batches_failed"] == found["messages_failed"] == 0
    # What was answered holds each message once; only its topic is there for each batch.
    assert found["bytes_published"] == sum(record.size for record in requests if record.message_ids)
    assert stored == sorted(b"%d-%d" % (number, turn) for number in range(THREADS) for turn in range(ROUNDS))
    called = calls()
    assert called.total() == ledger.requests
    assert called["ok"] == THREADS + ROUNDS


def test_counters_hold_while_threads_run_freely() -> None:
    """Streaming threads that share whenever they happen to meet count what the service saw, to the last one."""
    bundles = 20
    with serving() as server, working(lambda: make_fn(UNHURRIED), THREADS) as workers:
        running = [
            worker.run_bundle(b"%d-%d" % (number, turn))
            for turn in range(bundles)
            for number, worker in enumerate(workers)
        ]
        for each in running:
            each.result(PATIENCE)
        found, ledger = sum_of(workers), server.ledger()
        stored = sorted(message.data for message in server.messages(TOPIC) if message.data != b"warm")
    assert found["publish_attempts"] == ledger.requests <= THREADS * (bundles + 1)
    assert found["batches_published"] == THREADS * (bundles + 1)
    assert calls() == {"ok": ledger.requests}
    assert stored == sorted(b"%d-%d" % (number, turn) for number in range(THREADS) for turn in range(bundles))


def refuse_bad(record: RequestRecord) -> Reply | None:
    """Refuses each request that holds a bad message."""
    bad = any(message.data.startswith(b"bad") for message in record.messages)
    return Reply(status=grpc.StatusCode.INVALID_ARGUMENT, details="bad") if bad else None


def test_only_the_bundle_to_blame_has_a_dead_letter() -> None:
    """A refused message becomes a dead letter of its own bundle, and the others' bundles succeed."""
    with (
        serving(refuse_bad) as server,
        working(
            lambda: make_fn(UNHURRIED, dead_letter=True, with_outcomes=True), 4, bundle=run_tracked
        ) as workers,
    ):
        outputs = together(workers, dict(zip(workers, (b"a", b"bad", b"c", b"d"), strict=True)))
        ledger = server.ledger()
        stored = {message.message_id: message.data for message in server.messages(TOPIC)}
        found = sum_of(workers)
    bad = outputs.pop(1)
    assert [type(each) for each in bad] == [TaggedOutput]
    assert (bad[0].value.value.element, bad[0].value.value.reason) == (b"bad", "bad")
    told = [each.value.message_ids for output in outputs for each in output]
    assert [[stored[message_id] for message_id in ids] for ids in told] == [[b"a"], [b"c"], [b"d"]]
    assert found["publish_attempts"] == ledger.requests == 4 + 1 + 4
    assert (found["messages_published"], found["messages_failed"], found["batches_failed"]) == (7, 1, 1)
    assert calls() == {"ok": ledger.answered, "invalid_argument": ledger.failed["INVALID_ARGUMENT"]}


def test_a_refused_message_fails_its_own_bundle_only() -> None:
    """Without dead letters the bundle of the bad message fails, and no other has to be tried again."""
    with serving(refuse_bad) as server, working(lambda: make_fn(UNHURRIED), 4) as workers:
        with held_up(workers):
            data = zip(workers, (b"a", b"bad", b"c", b"d"), strict=True)
            running = [worker.run_bundle(each) for worker, each in data]
        errors = [each.exception(PATIENCE) for each in running]
        stored = sorted(message.data for message in server.messages(TOPIC) if message.data != b"warm")
        found = sum_of(workers)
    assert [type(error) for error in errors] == [type(None), PublishError, type(None), type(None)]
    assert stored == [b"a", b"c", b"d"]
    assert (found["messages_published"], found["messages_failed"], found["batches_failed"]) == (7, 1, 1)


def test_a_bundle_that_has_filled_a_batch_does_not_share() -> None:
    """The rest of a large bundle has a request of its own, and takes no small bundle's time or blame."""
    with (
        serving() as server,
        working(lambda: make_fn(UNHURRIED, batch_settings=batches_of(2)), 3) as workers,
    ):
        large, *small = workers

        def begin(write_fn: WriteFn) -> None:
            write_fn.start_bundle()
            for data in (b"1", b"2", b"3"):
                write_fn.process(data)

        large.do(begin, large.write_fn).result(PATIENCE)
        # The full batch has come back before the bundle ends.
        eventually(lambda: large.write_fn._lease.publisher._flow.batches == 0)

        before = server.ledger().requests
        with held_up(workers):
            running = [large.do(large.write_fn.finish_bundle), *(each.run_bundle(b"small") for each in small)]
        for each in running:
            each.result(PATIENCE)
        held = [[message.data for message in record.messages] for record in server.requests[before:]]
    # Where the large bundle's rest comes in the line decides whether the small ones are next to each other.
    assert [b"3"] in held
    assert sorted(data for each in held for data in each) == [b"3", b"small", b"small"]
