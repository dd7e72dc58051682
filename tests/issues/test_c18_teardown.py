"""C18. One DoFn's teardown closed the connections under another that was waiting for its answer.

The other bundle failed for no fault of its own; or nobody closed anything, and a worker filled up with threads.
"""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from beam_hedge import lease
from tests.beam.pipelines import make_fn, run_bundle
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, eventually, held, serving

INSTANCES = 64


def test_a_teardown_disturbs_no_other_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 64 instances all but the waiting one are torn down; its bundle is published, then all is closed."""
    monkeypatch.setattr(lease._registry, "linger", 0.2)
    gc.collect()
    baseline = _threads()
    with serving() as server, ThreadPoolExecutor(1) as pool:
        write_fns = [make_fn(UNHURRIED) for _ in range(INSTANCES)]
        for write_fn in write_fns:
            write_fn.setup()
        waiting, *others = write_fns
        publisher = waiting._lease.publisher
        with held(server):
            bundle = pool.submit(run_bundle, waiting, [b"waiting"])
            server.wait_for(lambda ledger: ledger.open == 1, timeout=PATIENCE)
            for write_fn in others:
                write_fn.teardown()
                write_fn.teardown()
            # Longer than the linger: it must not begin while there is a user.
            with pytest.raises(TimeoutError):
                server.wait_for(lambda ledger: not ledger.open, timeout=0.4)
            assert publisher.usable
        bundle.result(PATIENCE)
        assert server.ledger().cancelled == 0
        assert publisher.usable
        waiting.teardown()
        waiting.teardown()
        assert publisher.usable
        eventually(lambda: not publisher.usable)
    eventually(lambda: not _threads() - baseline)


def test_an_instance_that_comes_within_the_linger_finds_the_connections_open() -> None:
    """Setup after teardown goes on with the same publisher, bucket and connections."""
    with serving() as server:
        write_fn = make_fn(UNHURRIED)
        used = []
        for number in range(3):
            write_fn.setup()
            used.append(write_fn._lease.publisher)
            run_bundle(write_fn, [b"%d" % number])
            write_fn.teardown()
            write_fn.teardown()
        assert len(set(used)) == 1
        assert used[0].token_bucket.milli_tokens == 20_300
        assert len({record.peer_port for record in server.requests}) <= 2
        assert len(server.messages(TOPIC)) == 3


def test_an_instance_that_comes_after_the_linger_opens_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Setup long after teardown works, too; what hedging has earned is not lost."""
    monkeypatch.setattr(lease._registry, "linger", 0.0)
    with serving() as server:
        write_fn = make_fn(UNHURRIED)
        used = []
        for number in range(3):
            write_fn.setup()
            used.append(write_fn._lease.publisher)
            run_bundle(write_fn, [b"%d" % number])
            write_fn.teardown()
            eventually(lambda: not used[-1].usable)
        assert used[-1].token_bucket.milli_tokens == 20_300
        assert len({record.peer_port for record in server.requests}) == 3


def _threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if not thread.name.startswith("local-pubsub")}
