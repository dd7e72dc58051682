"""Many threads and few publishers: what is shared, and that nothing is left behind."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from beam_hedge import HedgingPublisher, HedgingSettings
from beam_hedge.engine import join_engine
from beam_hedge.testing import NEVER, Reply
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, by_attempt, eventually, serving


def test_64_threads_share_a_publisher_its_bucket_and_its_connections() -> None:
    """However many bundles a worker runs, the service sees two connections, and one budget for hedges."""
    threads = 64
    together = threading.Barrier(threads)
    release = threading.Event()
    settings = HedgingSettings(hedge_delay=0.1, max_tokens=7, initial_tokens=7, refill_ratio=0.001)
    with (
        serving(by_attempt(Reply(until=release), NEVER)) as server,
        HedgingPublisher(TOPIC, settings) as publisher,
        ThreadPoolExecutor(threads) as pool,
    ):

        def publish(number: int) -> int:
            together.wait(PATIENCE)
            return publisher.publish([b"%d" % number]).result(PATIENCE).hedges

        results = pool.map(publish, range(threads))
        server.wait_for(lambda ledger: ledger.requests == threads + 7, timeout=PATIENCE)
        eventually(lambda: publisher.token_bucket.milli_tokens == 0)
        release.set()
        assert sum(results) == 7
        assert len({record.peer_port for record in server.requests}) == 2
        assert server.ledger().hedges == 7
        assert len({message.data for message in server.messages(TOPIC)}) == threads
        assert publisher.token_bucket.milli_tokens == threads


def test_all_publishers_of_a_process_share_one_thread() -> None:
    """A second publisher costs connections, not another event loop."""
    with serving() as server, HedgingPublisher(TOPIC) as first, HedgingPublisher(TOPIC) as second:
        for publisher in (first, second):
            publisher.publish([b"x"]).result(PATIENCE)
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("beam_hedge-engine") == 1
        assert len({record.peer_port for record in server.requests}) == 2


def test_8_threads_may_make_publishers_at_once() -> None:
    """Making publishers at the same time neither hangs nor mixes them up."""
    together = threading.Barrier(8)
    with serving() as server, ThreadPoolExecutor(8) as pool:

        def publish(number: int) -> None:
            together.wait(PATIENCE)
            with HedgingPublisher(TOPIC) as publisher:
                publisher.publish([b"%d" % number]).result(PATIENCE)

        for _ in range(5):
            list(pool.map(publish, range(8)))
        assert server.ledger().messages == 40


def test_threads_and_sockets_are_back_at_the_baseline_after_close() -> None:
    """A process that opens and closes publishers for days does not fill up, gRPC's own threads included."""
    with serving():
        with HedgingPublisher(TOPIC, UNHURRIED) as publisher:
            publisher.publish([b"warm"]).result(PATIENCE)
        gc.collect()
        threads, sockets = _threads(), _sockets()
        assert not [name for name in threads if "poll" in name or "engine" in name]
        for _ in range(10):
            with HedgingPublisher(TOPIC, UNHURRIED) as publisher:
                publisher.publish([b"x"]).result(PATIENCE)
        gc.collect()
        assert len(_threads()) == len(threads)
        # The server's ends of the connections close a moment later.
        eventually(lambda: _sockets() <= sockets)


def _threads() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if not name.startswith("local-pubsub")]


def _sockets() -> int:
    return sum("socket:" in _target(entry) for entry in Path("/proc/self/fd").iterdir())


def _target(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except FileNotFoundError:
        return ""


def test_what_fails_on_the_engine_is_raised_where_it_was_asked_for() -> None:
    """A publisher that cannot be made says why, to whoever makes it, and the engine goes on."""

    class User:
        def engine_died(self) -> None:
            """Nothing waits here."""

    async def fail() -> None:
        raise OSError("no channel")

    async def work() -> str:
        return "done"

    user = User()
    engine = join_engine(user)
    try:
        with pytest.raises(OSError, match="no channel"):
            engine.run(fail)
        assert engine.run(work) == "done"
    finally:
        engine.leave(user)
        engine.wait_ended()
