"""C23. Threads that made a client at the same moment hung, or made one each.

A worker starts its bundles at once, so this is the first thing that happens in every job.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from google.auth.credentials import AnonymousCredentials
from google.pubsub_v1 import PublisherClient

from beam_hedge import channel_factory, lease
from tests.beam.pipelines import close_publishers, make_fn, run_bundle
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    import pytest

THREADS = 8


def test_8_threads_that_are_first_at_once_share_one_publisher() -> None:
    """Nobody hangs, and the service sees one client's connections."""
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(10):
            together = threading.Barrier(THREADS)

            def first_bundle(number: int, together: threading.Barrier = together) -> int:
                write_fn = make_fn(UNHURRIED)
                together.wait(PATIENCE)
                write_fn.setup()
                run_bundle(write_fn, [b"%d" % number])
                used = id(write_fn._lease.publisher)
                write_fn.teardown()
                return used

            with serving() as server:
                bundles = [pool.submit(first_bundle, number) for number in range(THREADS)]
                assert not wait(bundles, PATIENCE).not_done
                assert len({bundle.result(0) for bundle in bundles}) == 1
                assert len(server.messages(TOPIC)) == THREADS
                assert len({record.peer_port for record in server.requests}) <= 2
            close_publishers()


def test_8_threads_make_one_client_of_the_real_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client library's client, which is what can hang, is made once."""
    made: list[object] = []

    def client(**arguments: Any) -> object:
        made.append(arguments)
        return PublisherClient(**arguments)

    monkeypatch.setattr(channel_factory, "PublisherClient", client)
    together = threading.Barrier(THREADS)

    def setup(_: int) -> None:
        write_fn = make_fn(
            UNHURRIED, client_options={"api_endpoint": "localhost:1"}, credentials=AnonymousCredentials()
        )
        together.wait(PATIENCE)
        write_fn.setup()
        write_fn.teardown()

    with ThreadPoolExecutor(THREADS) as pool:
        setups = [pool.submit(setup, number) for number in range(THREADS)]
        assert not wait(setups, PATIENCE).not_done
        for each in setups:
            each.result(0)
    assert len(made) == 1
    assert len(lease._registry._shared) == 1
