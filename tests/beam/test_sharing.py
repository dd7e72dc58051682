"""What the bundles of one worker process share: a publisher, its bucket, its connections."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import apache_beam as beam
from apache_beam.testing.test_stream import TestStream

from beam_hedge import HedgingSettings, WriteToPubSubHedged, lease
from beam_hedge.testing import NEVER, Reply
from tests.beam.pipelines import RUNNERS, batches_of, make_fn, run_bundle, run_pipeline
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, by_attempt, eventually, held, serving

if TYPE_CHECKING:
    import pytest

    from beam_hedge.publisher import HedgingPublisher
    from beam_hedge.write_fn import WriteFn

BUNDLES = 64


def publishers() -> list[HedgingPublisher]:
    """Returns the publishers that the sink holds at the moment."""
    found = [shared.publisher for shared in lease._registry._shared.values()]
    return [publisher for publisher in found if publisher is not None]


def test_64_concurrent_bundles_share_everything() -> None:
    """However many bundles a runner has under way, the service sees two connections and one budget."""
    settings = HedgingSettings(hedge_delay=0.1, max_tokens=5, initial_tokens=5, refill_ratio=0.001)
    together = threading.Barrier(BUNDLES)
    release = threading.Event()
    write_fns = [make_fn(settings, batch_settings=batches_of(1)) for _ in range(BUNDLES)]

    def bundle(number: int) -> None:
        write_fn = write_fns[number]
        write_fn.setup()
        together.wait(PATIENCE)
        run_bundle(write_fn, [b"%d a" % number, b"%d b" % number])

    with (
        serving(by_attempt(Reply(until=release), NEVER)) as server,
        ThreadPoolExecutor(BUNDLES) as pool,
    ):
        bundles = [pool.submit(bundle, number) for number in range(BUNDLES)]
        server.wait_for(lambda ledger: ledger.requests == 2 * BUNDLES + 5, timeout=PATIENCE)
        release.set()
        for each in bundles:
            each.result(PATIENCE)
        assert len(publishers()) == 1
        assert len({record.peer_port for record in server.requests}) == 2
        assert server.ledger().hedges == 5
        assert len({message.data for message in server.messages(TOPIC)}) == 2 * BUNDLES
        for write_fn in write_fns:
            write_fn.teardown()


def test_a_runner_with_8_bundles_at_once_has_one_set_of_connections() -> None:
    """Bundles that a real runner has under way at the same time share two connections, too."""
    with serving() as server, ThreadPoolExecutor(1) as pool:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=batches_of(1000))
        with held(server):
            elements = [b"%d" % number for number in range(200)]
            running = pool.submit(run_pipeline, elements, transform, RUNNERS["threads"])
            server.wait_for(lambda ledger: ledger.open == 8, timeout=PATIENCE)
        running.result(PATIENCE)
        assert len({record.peer_port for record in server.requests}) == 2
        assert server.ledger().messages == 200
    assert len(publishers()) == 1


def test_a_dofn_for_each_bundle_still_shares_one_publisher() -> None:
    """A runner that makes a DoFn for each bundle opens no connections for each of them."""
    stream = TestStream()
    for number in range(30):
        stream = stream.add_elements([b"%d" % number])
    with serving() as server:
        with beam.Pipeline(runner="BundleBasedDirectRunner") as pipeline:
            _ = pipeline | stream.advance_watermark_to_infinity() | WriteToPubSubHedged(TOPIC, UNHURRIED)
        assert server.ledger().requests == server.ledger().messages == 30
        assert len({record.peer_port for record in server.requests}) <= 2
    assert len(publishers()) == 1


def test_copies_of_one_configuration_share_and_others_do_not() -> None:
    """What is published with other settings has its own budget and its own connections."""
    same = [make_fn(UNHURRIED), make_fn(HedgingSettings(hedge_delay=10.0, initial_tokens=20))]
    other = [make_fn(None), make_fn(UNHURRIED, connections=3), make_fn(HedgingSettings(hedge_delay=9))]
    with serving():
        for write_fn in same + other:
            write_fn.setup()
        used = [id(write_fn._lease.publisher) for write_fn in same + other]
        assert used[0] == used[1]
        assert len(set(used)) == 4
        for write_fn in same + other:
            write_fn.teardown()


def test_a_collected_dofn_ends_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner that drops a DoFn without teardown does not keep connections open for ever."""
    monkeypatch.setattr(lease._registry, "linger", 0.0)
    with serving() as server:
        write_fn = make_fn(None)
        write_fn.setup()
        run_bundle(write_fn, [b"x"])
        [publisher] = publishers()
        assert publisher.usable
        gone = weakref.ref(write_fn)
        del write_fn
        gc.collect()
        assert gone() is None
        eventually(lambda: not publisher.usable and not publishers())
        assert server.ledger().messages == 1


def test_a_collected_dofn_with_requests_out_cancels_them() -> None:
    """A bundle that the runner dropped does not go on publishing behind its back."""
    with serving(NEVER) as server:
        write_fn = make_fn(None, batch_settings=batches_of(1))
        write_fn.setup()
        write_fn.start_bundle()
        write_fn.process(b"x")
        server.wait_for(lambda ledger: ledger.open == 1, timeout=PATIENCE)
        del write_fn
        gc.collect()
        server.wait_for(lambda ledger: ledger.cancelled == 1, timeout=PATIENCE)
        assert server.ledger().requests == 1


def test_the_publisher_lingers_and_its_bucket_outlives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next bundle finds the connections open, and after the linger at least the tokens that were earned."""
    with serving():
        first, second = make_fn(UNHURRIED), make_fn(UNHURRIED)
        _setup_run_teardown(first)
        [publisher] = publishers()
        monkeypatch.setattr(lease._registry, "linger", 0.0)
        _setup_run_teardown(second)
        eventually(lambda: not publisher.usable)
        third = make_fn(UNHURRIED)
        third.setup()
        assert third._lease.publisher is not publisher
        assert third._lease.publisher.token_bucket.milli_tokens == 20_200
        third.teardown()


def _setup_run_teardown(write_fn: WriteFn) -> None:
    write_fn.setup()
    run_bundle(write_fn, [b"x"])
    write_fn.teardown()
