"""A worker's process is interrupted or ended, or loses its engine with requests out."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from beam_hedge import EngineDiedError
from beam_hedge.testing import Reply
from tests.beam.pipelines import batches_of, close_publishers, make_fn, run_bundle
from tests.faults.program_running import running
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, held, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beam_hedge.testing import LocalPubSub, RequestRecord
    from tests.faults.row import Matrix

SECTION = "Processes and runners"
WORKER = "tests.faults.program_worker"
DONE = ["done-1", "done-2", "done-3"]
OUT = ["out-1", "out-2", "out-3"]


@pytest.fixture(autouse=True)
def no_lingering_publishers() -> Iterator[None]:
    """Close what a DoFn of this process leased."""
    yield
    close_publishers()


def encoded(*names: list[str]) -> list[bytes]:
    """Returns messages by their names."""
    return [name.encode() for each in names for name in each]


def stored(server: LocalPubSub) -> list[bytes]:
    """Returns what the server holds."""
    return [message.data for message in server.messages(TOPIC)]


def silent_about(names: list[str]) -> Callable[[RequestRecord], Reply | None]:
    """Makes a script: messages with these names get no answer, and are stored all the same."""
    return lambda record: Reply(never=True) if record.messages[0].data.decode() in names else None


def are_out(server: LocalPubSub) -> None:
    """Waits until the bundle that gets no answer is out as a whole."""
    server.wait_for(lambda ledger: ledger.open == len(OUT), timeout=PATIENCE)


def test_an_interrupt_in_finish_bundle(matrix: Matrix) -> None:
    """Ctrl-C ends the bundle and its requests; a program that goes on can publish it again."""
    with (
        serving(silent_about(OUT)) as server,
        running(WORKER, PUBSUB_EMULATOR_HOST=server.endpoint) as program,
    ):
        assert program.ask("publish", *DONE) == ["published", *DONE]
        program.tell("publish", *OUT)
        are_out(server)
        program.process.send_signal(signal.SIGINT)
        interrupted = time.monotonic()
        assert program.hear() == ["KeyboardInterrupt", *OUT]
        server.wait_for(lambda ledger: ledger.cancelled == len(OUT), timeout=PATIENCE)
        server.script = None
        assert program.ask("publish", *OUT) == ["published", *OUT]
        recovery = time.monotonic() - interrupted
        assert program.end() == (0, "", "")
        ledger = server.ledger()
        row = matrix.row(
            "Ctrl-C in `finish_bundle`; the program then tries the bundle again",
            section=SECTION,
            inputs=encoded(DONE, OUT),
            acknowledged=encoded(DONE, OUT),
            stored=stored(server),
            hedges=ledger.hedges,
            recovery=recovery,
        )
    assert (row.duplicated, ledger.open) == (len(OUT), 0)
    assert ledger.requests == len(DONE) + 2 * len(OUT)


def test_the_interpreter_exits(matrix: Matrix) -> None:
    """A program that ends in mid-bundle ends at once, with status 0, and takes its requests with it."""
    with (
        serving(silent_about(OUT)) as server,
        running(WORKER, PUBSUB_EMULATOR_HOST=server.endpoint) as program,
    ):
        assert program.ask("publish", *DONE) == ["published", *DONE]
        assert program.ask("begin", *OUT) == ["begun"]
        are_out(server)
        assert program.end() == (0, "", "")
        ledger = server.wait_for(lambda ledger: not ledger.open, timeout=PATIENCE)
        matrix.row(
            "The interpreter exits with requests out",
            section=SECTION,
            inputs=encoded(DONE, OUT),
            acknowledged=encoded(DONE),
            failed=encoded(OUT),
            stored=stored(server),
            hedges=ledger.hedges,
        )
    assert ledger.cancelled == len(OUT)
    assert ledger.requests == len(DONE) + len(OUT)


@pytest.mark.parametrize(
    ("number", "handled", "status"),
    [
        (signal.SIGTERM, False, -signal.SIGTERM),
        (signal.SIGTERM, True, 3),
        (signal.SIGKILL, False, -signal.SIGKILL),
    ],
    ids=["SIGTERM", "SIGTERM as SystemExit", "SIGKILL"],
)
def test_a_signal_ends_the_process(number: signal.Signals, handled: bool, status: int, matrix: Matrix) -> None:
    """A worker that is ended in `finish_bundle` leaves no request behind; its finished bundles are stored."""
    with (
        serving(silent_about(OUT)) as server,
        running(WORKER, PUBSUB_EMULATOR_HOST=server.endpoint) as program,
    ):
        if handled:
            assert program.ask("exit-on-sigterm") == ["ready"]
        assert program.ask("publish", *DONE) == ["published", *DONE]
        program.tell("publish", *OUT)
        are_out(server)
        program.process.send_signal(number)
        assert program.end() == (status, "", "")
        ledger = server.wait_for(lambda ledger: not ledger.open, timeout=PATIENCE)
        how = ", which the program turns into SystemExit," if handled else ""
        matrix.row(
            f"{number.name}{how} with requests out",
            section=SECTION,
            inputs=encoded(DONE, OUT),
            acknowledged=encoded(DONE),
            failed=encoded(OUT),
            stored=stored(server),
            hedges=ledger.hedges,
        )
    assert ledger.cancelled == len(OUT)
    assert ledger.requests == len(DONE) + len(OUT)


def test_the_engines_thread_is_killed(matrix: Matrix) -> None:
    """A bundle that waits fails at once, and is published when the runner tries it again."""
    with serving() as server, ThreadPoolExecutor(1) as pool:
        write_fn = make_fn(UNHURRIED, batch_settings=batches_of(1))
        write_fn.setup()
        publisher = write_fn._lease.publisher
        run_bundle(write_fn, DONE)
        with held(server):
            bundle = pool.submit(run_bundle, write_fn, OUT)
            are_out(server)
            killed = time.monotonic()
            publisher._engine.loop.call_soon_threadsafe(publisher._engine.loop.stop)
            assert isinstance(bundle.exception(PATIENCE), EngineDiedError)
            server.wait_for(lambda ledger: not ledger.open, timeout=PATIENCE)
        run_bundle(write_fn, OUT)
        recovery = time.monotonic() - killed
        write_fn.teardown()
        publisher.close()
        row = matrix.row(
            "The engine's thread dies; the runner tries the bundle again",
            section=SECTION,
            inputs=encoded(DONE, OUT),
            acknowledged=encoded(DONE, OUT),
            stored=stored(server),
            hedges=server.ledger().hedges,
            recovery=recovery,
        )
    assert (row.duplicated, server.ledger().cancelled) == (len(OUT), len(OUT))
