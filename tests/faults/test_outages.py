"""Nobody can be reached for a while, or everything is slow; afterwards all is as before."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from beam_hedge import HedgingPublisher, HedgingSettings
from beam_hedge.testing import Reply
from tests.beam.pipelines import batches_of, close_publishers, make_fn
from tests.faults.publishing import RECOVERY, RETRY, Caller, budget, lasts, stored
from tests.server.connecting import open_all
from tests.server.serving import EAGER, PATIENCE, TOPIC, UNHURRIED, held, serving

if TYPE_CHECKING:
    from beam_hedge.testing import RequestRecord
    from tests.faults.row import Matrix

SECTION = "Outages and slow times"
OUTAGE = 3.0
MESSAGES = 200
THREADS = 8


@pytest.mark.parametrize("settings", [EAGER, None], ids=["hedged", "plain"])
def test_the_server_is_gone(settings: HedgingSettings | None, matrix: Matrix) -> None:
    """What is published while nobody listens is published when somebody does again."""
    with serving() as server, HedgingPublisher(TOPIC, settings, retry_settings=RETRY) as publisher:
        open_all(publisher)
        caller = Caller(publisher)
        caller.publish_each(MESSAGES // 2, "before and while")
        server.stop()
        caller.publish_each(MESSAGES // 2, "while")
        lasts(OUTAGE)
        server.start()
        recovery = caller.recover(time.monotonic())
    hedging = "hedged" if settings else "not hedged"
    row = caller.row(
        matrix,
        f"the server is gone for {OUTAGE:g} s and comes back on its port, {hedging}",
        section=SECTION,
        stored=stored(server),
        recovery=recovery,
    )
    assert row.acknowledged == MESSAGES
    assert row.hedges <= budget(EAGER, server)


def test_the_server_is_restarted_in_mid_bundle(matrix: Matrix) -> None:
    """A bundle that sees a restart of the service is published as a whole, in one try."""
    inputs = [b"element %d" % number for number in range(MESSAGES)]
    first, second = inputs[: MESSAGES // 2], inputs[MESSAGES // 2 :]

    def script(record: RequestRecord) -> Reply | None:
        return Reply(delay=600) if record.number % 2 else None

    with serving(script) as server:
        write_fn = make_fn(UNHURRIED, retry_settings=RETRY, batch_settings=batches_of(1))
        write_fn.setup()
        write_fn.start_bundle()
        for element in first:
            write_fn.process(element)
        server.wait_for(
            lambda ledger: ledger.requests == len(first) and ledger.open == len(first) // 2, timeout=PATIENCE
        )
        server.stop()
        server.script = None
        for element in second:
            write_fn.process(element)
        server.start()
        up_at = time.monotonic()
        write_fn.finish_bundle()
        recovery = time.monotonic() - up_at
        write_fn.teardown()
        close_publishers()
    matrix.row(
        "the server is stopped and started in mid-bundle",
        section=SECTION,
        inputs=inputs,
        acknowledged=inputs,
        stored=stored(server),
        hedges=server.ledger().hedges,
        recovery=recovery,
    )
    assert recovery < RECOVERY


def test_many_threads_meet_an_outage(matrix: Matrix) -> None:
    """An outage costs at most the tokens there are, whatever it lasts, and all is published after it."""
    settings = HedgingSettings(hedge_delay=0.3, max_tokens=50, initial_tokens=50)
    with (
        serving() as server,
        HedgingPublisher(TOPIC, settings, retry_settings=RETRY) as publisher,
        ThreadPoolExecutor(THREADS) as pool,
    ):
        open_all(publisher)
        hedges_before = server.ledger().hedges
        caller = Caller(publisher)
        with held(server):
            list(pool.map(lambda number: caller.publish(b"message %d" % number), range(MESSAGES)))
            server.wait_for(lambda ledger: ledger.open >= MESSAGES, timeout=PATIENCE)
            lasts(OUTAGE)
            hedges_within = server.ledger().hedges - hedges_before
        recovery = caller.recover(time.monotonic())
    row = caller.row(
        matrix,
        f"nothing is answered for {OUTAGE:g} s: {MESSAGES} batches on {THREADS} threads, 50 tokens",
        section=SECTION,
        stored=stored(server),
        recovery=recovery,
    )
    assert row.acknowledged == MESSAGES
    assert hedges_within <= settings.max_tokens


def test_everything_is_ten_times_slower(matrix: Matrix) -> None:
    """In a brownout hedging adds no more than its budget: what it has saved and what it earns."""
    normal, slow = Reply(delay=0.04), Reply(delay=0.4)
    settings = HedgingSettings(hedge_delay=0.2, max_tokens=5, initial_tokens=5)
    with (
        serving(normal) as server,
        HedgingPublisher(TOPIC, settings, retry_settings=RETRY) as publisher,
        ThreadPoolExecutor(THREADS) as pool,
    ):
        caller = Caller(publisher)

        def publish(number: int) -> None:
            caller.publish(b"message %d" % number).result(PATIENCE)

        list(pool.map(publish, range(40)))
        server.script = slow
        list(pool.map(publish, range(40, 100)))
        server.script = normal
        recovery = caller.recover(time.monotonic())
    row = caller.row(
        matrix,
        "brownout: each answer takes ten times as long",
        section=SECTION,
        stored=stored(server),
        recovery=recovery,
    )
    assert row.acknowledged == row.messages
    assert row.hedges <= budget(settings, server)
