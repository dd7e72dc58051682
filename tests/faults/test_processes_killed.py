"""`kill -9` of the service in mid-bundle, and of one of a runner's worker processes."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from beam_hedge.testing import Reply
from tests.beam.pipelines import batches_of, close_publishers, make_fn, run_bundle
from tests.faults.program_running import STARTUP, running
from tests.faults.publishing import RETRY
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, eventually, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from beam_hedge.testing import LocalPubSub
    from tests.faults.row import Matrix

SECTION = "Processes and runners"
ALL = 1_000_000
MESSAGES = 40

# Below the ports that the system takes for outgoing connections: nobody else gets one between two servers.
PORTS = range(20_000, 30_000)


@pytest.fixture(autouse=True)
def no_lingering_publishers() -> Iterator[None]:
    """Close what a DoFn of this process leased."""
    yield
    close_publishers()


def free_port() -> int:
    """Returns a port that nothing listens on."""
    for port in random.SystemRandom().sample(PORTS, 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise AssertionError("no port is free")


@contextmanager
def service(port: int, path: Path, answers: int) -> Iterator[None]:
    """Runs the service that keeps what it gets in a file, and ends it as `kill -9` does."""
    with running("tests.faults.program_server", str(port), str(path), str(answers)) as program:
        assert program.hear() == [f"127.0.0.1:{port}"]
        yield
        program.kill()


def kept(path: Path) -> list[tuple[int, bytes]]:
    """Returns what the service has taken: the number of the hedge, or 0, and the message."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [(int(hedge), data) for hedge, _, data in (line.partition(b" ") for line in lines)]


@pytest.mark.parametrize("answers", [0, 15], ids=["no answer", "some answers"])
def test_the_service_is_killed(
    answers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, matrix: Matrix
) -> None:
    """The bundle waits for the service to come back, and is published with the same connections."""
    port, file = free_port(), tmp_path / "kept"
    inputs = [b"message-%d" % number for number in range(MESSAGES)]
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", f"127.0.0.1:{port}")
    with ThreadPoolExecutor(1) as pool:
        write_fn = make_fn(UNHURRIED, retry_settings=RETRY, batch_settings=batches_of(1))
        with service(port, file, answers):
            write_fn.setup()
            publisher = write_fn._lease.publisher
            bundle = pool.submit(run_bundle, write_fn, inputs)
            eventually(lambda: len(kept(file)) == MESSAGES)
        assert not bundle.done()
        with service(port, file, ALL):
            since = time.monotonic()
            bundle.result(PATIENCE)
            run_bundle(write_fn, [b"as before"])
            recovery = time.monotonic() - since
        assert write_fn._lease.publisher is publisher
        write_fn.teardown()
    taken = kept(file)
    row = matrix.row(
        f"The service is killed (`kill -9`) in mid-bundle, after {answers} answers, and started again",
        section=SECTION,
        inputs=inputs,
        acknowledged=inputs,
        stored=[data for _, data in taken],
        hedges=sum(hedge > 0 for hedge, _ in taken),
        recovery=recovery,
    )
    # Those that were not answered; an answer can be lost on its way, too.
    assert row.duplicated >= MESSAGES - answers


def test_a_worker_process_is_killed(matrix: Matrix) -> None:
    """The bundle of the process that is killed is not reported as done, and the other one is published."""
    go = threading.Event()
    with (
        serving(Reply(until=go), store="answer") as server,
        running(
            "tests.faults.program_pipeline", str(MESSAGES), PUBSUB_EMULATOR_HOST=server.endpoint
        ) as program,
    ):
        # Both bundles are out as a whole.
        server.wait_for(lambda ledger: ledger.open >= MESSAGES / 5, timeout=STARTUP)
        eventually(lambda: len(signed(server)) == MESSAGES)
        by = signed(server)
        victim, survivor = set(by.values())
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: not [each for each in open_calls(server) if each == victim])
        go.set()
        ledger = server.wait_for(lambda ledger: not ledger.open, timeout=PATIENCE)
        stored = [message.data.split()[0] for message in server.messages(TOPIC)]
        # The runner may wait for a worker that does not come back, for minutes.
        assert program.process.poll() != 0
        matrix.row(
            "One of two worker processes is killed (`kill -9`) in mid-bundle",
            section=SECTION,
            inputs=list(by),
            acknowledged=[number for number, process in by.items() if process == survivor],
            failed=[number for number, process in by.items() if process == victim],
            stored=stored,
            hedges=ledger.hedges,
        )
    assert {by[number] for number in stored} == {survivor}


def signed(server: LocalPubSub) -> dict[bytes, int]:
    """Returns which process has sent which message."""
    pairs = [message.data.split() for record in server.requests for message in record.messages]
    return {number: int(process) for number, process in pairs}


def open_calls(server: LocalPubSub) -> list[int]:
    """Returns the processes whose calls are open."""
    return [int(each.messages[0].data.split()[1]) for each in server.requests if each.ended is None]
