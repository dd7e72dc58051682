"""Every order in which runners call a DoFn, the odd ones included."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from google.auth.exceptions import DefaultCredentialsError

from beam_hedge import WriteToPubSubHedged
from beam_hedge.testing import NEVER
from tests.beam.pipelines import batches_of, counters, make_fn, run_bundle, run_pipeline
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    from pathlib import Path

    from beam_hedge.testing import LocalPubSub


def data(server: LocalPubSub) -> list[bytes]:
    """Returns what was stored."""
    return [message.data for message in server.messages(TOPIC)]


def test_one_instance_publishes_bundle_after_bundle() -> None:
    """A DoFn is used for many bundles; each is published when its `finish_bundle` returns."""
    with serving() as server:
        write_fn = make_fn(UNHURRIED, batch_settings=batches_of(1000))
        write_fn.setup()
        for number in range(5):
            run_bundle(write_fn, [b"%d" % number])
            assert data(server) == [b"%d" % n for n in range(number + 1)]
        write_fn.teardown()


def test_bundle_repeat_publishes_each_repetition_whole() -> None:
    """A runner that repeats bundles on one instance gets each of them published once more, nothing mixed up."""
    with serving() as server:
        options = ["--runner=FnApiRunner", "--direct_runner_bundle_repeat=3"]
        elements = [b"%d" % number for number in range(10)]
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=batches_of(3))
        run_pipeline(elements, transform, options)
        stored = data(server)
    assert {stored.count(element) for element in elements} == {4}
    assert len(stored) == 40


def test_bundle_repeat_is_counted_once_for_each_repetition() -> None:
    """What is counted is what was published, in repeated bundles too."""
    with serving() as server:
        options = ["--runner=FnApiRunner", "--direct_runner_bundle_repeat=1"]
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=batches_of(1000))
        found = counters(run_pipeline([b"one"], transform, options))
        assert len(data(server)) == 2
    # The runner reports the metrics of the last repetition or of all of them, but no half of one.
    assert found["messages_published"] == found["batches_published"] == found["publish_attempts"]


def test_teardown_twice_and_setup_again() -> None:
    """A runner may tear down twice and use an instance again."""
    with serving() as server:
        write_fn = make_fn(UNHURRIED)
        for number in range(3):
            write_fn.setup()
            run_bundle(write_fn, [b"%d" % number])
            write_fn.teardown()
            write_fn.teardown()
        assert data(server) == [b"0", b"1", b"2"]


def test_teardown_before_setup() -> None:
    """An instance whose setup failed or never came can be torn down."""
    make_fn(UNHURRIED).teardown()


def test_setup_twice() -> None:
    """A second setup without teardown does not hold two leases for ever."""
    with serving() as server:
        write_fn = make_fn(UNHURRIED)
        write_fn.setup()
        first = write_fn._lease
        write_fn.setup()
        assert len(first._shared.holders) == 2
        del first
        run_bundle(write_fn, [b"x"])
        assert len(write_fn._lease._shared.holders) == 1
        write_fn.teardown()
        assert data(server) == [b"x"]


def test_a_bundle_without_elements_sends_nothing() -> None:
    """Empty bundles are common in streaming and cost nothing at the service."""
    with serving() as server:
        write_fn = make_fn(UNHURRIED)
        write_fn.setup()
        for _ in range(3):
            run_bundle(write_fn, [])
        write_fn.teardown()
        assert server.ledger().requests == 0


def test_an_interrupted_bundle_is_forgotten() -> None:
    """A bundle that the runner gave up without a word leaves nothing for the next one."""
    with serving() as server:
        write_fn = make_fn(UNHURRIED, batch_settings=batches_of(1000))
        write_fn.setup()
        write_fn.start_bundle()
        write_fn.process(b"given up")
        run_bundle(write_fn, [b"next"])
        write_fn.teardown()
        assert data(server) == [b"next"]


def test_teardown_in_the_middle_of_a_bundle_publishes_nothing_more() -> None:
    """A bundle that was not finished is not flushed by teardown: the runner will try it again."""
    with serving() as server:
        write_fn = make_fn(UNHURRIED, batch_settings=batches_of(1000))
        write_fn.setup()
        write_fn.start_bundle()
        write_fn.process(b"x")
        write_fn.teardown()
        assert server.ledger().requests == 0


@pytest.mark.parametrize("elements", [1, 10, 11])
def test_finish_bundle_returns_when_everything_is_stored(elements: int) -> None:
    """A finished bundle is one that the service has, down to the last partial batch."""
    with serving(profile="1:0.05", store="answer") as server:
        write_fn = make_fn(UNHURRIED, batch_settings=batches_of(5))
        write_fn.setup()
        run_bundle(write_fn, [b"%d" % number for number in range(elements)])
        assert sorted(data(server)) == sorted(b"%d" % number for number in range(elements))
        write_fn.teardown()


def test_an_interrupted_finish_bundle_cancels_what_is_out() -> None:
    """Ctrl-C in the middle of a bundle ends it at once, and its requests with it."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with serving(NEVER) as server, ThreadPoolExecutor(1) as pool:
            write_fn = make_fn(UNHURRIED)
            write_fn.setup()
            main_thread = threading.get_ident()

            def interrupt_when_out() -> None:
                server.wait_for(lambda ledger: ledger.open == 1, timeout=PATIENCE)
                signal.pthread_kill(main_thread, signal.SIGUSR1)

            interrupting = pool.submit(interrupt_when_out)
            with pytest.raises(KeyboardInterrupt):
                run_bundle(write_fn, [b"x"])
            interrupting.result(PATIENCE)
            server.wait_for(lambda ledger: ledger.cancelled == 1, timeout=PATIENCE)
            write_fn.teardown()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_worker_without_credentials_says_so_and_can_be_set_up_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A setup that failed leaves nothing behind: teardown is harmless, and the next setup can succeed."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    write_fn = make_fn(UNHURRIED)
    for _ in range(2):
        with pytest.raises(DefaultCredentialsError):
            write_fn.setup()
        write_fn.teardown()
    with serving() as server:
        write_fn.setup()
        run_bundle(write_fn, [b"x"])
        write_fn.teardown()
        assert data(server) == [b"x"]
