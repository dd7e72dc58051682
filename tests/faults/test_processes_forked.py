"""A worker's process forks with requests out, and the child publishes, too."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from beam_hedge.testing import Reply
from tests.faults.program_running import running
from tests.server.serving import PATIENCE, TOPIC, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beam_hedge.testing import LocalPubSub
    from tests.faults.program_running import Program
    from tests.faults.row import Matrix

SECTION = "Processes and runners"
WORKER = "tests.faults.program_worker"
OUT, CHILD, AFTER = ["out-1", "out-2", "out-3"], ["child-1", "child-2"], ["after-1", "after-2"]


@contextmanager
def parent(grpc_sees_forks: str) -> Iterator[tuple[LocalPubSub, Program, Callable[[], None]]]:
    """Starts a program with a bundle out.

    Args:
        grpc_sees_forks: "1" or "0": whether gRPC may do what it does before and after a fork.

    Yields:
        The server, the program, and what lets the server answer.
    """
    go = threading.Event()
    with (
        serving(lambda record: Reply(until=go) if record.number <= len(OUT) else None) as server,
        running(
            WORKER, PUBSUB_EMULATOR_HOST=server.endpoint, GRPC_ENABLE_FORK_SUPPORT=grpc_sees_forks
        ) as program,
    ):
        assert program.ask("begin", *OUT) == ["begun"]
        server.wait_for(lambda ledger: ledger.open == len(OUT), timeout=PATIENCE)
        yield server, program, go.set


def finish(server: LocalPubSub, program: Program, fault: str, matrix: Matrix) -> None:
    """Checks that the parent goes on as if nothing had been, and accounts for all messages."""
    assert program.ask("finish") == ["published", *OUT]
    assert program.ask("publish", *AFTER) == ["published", *AFTER]
    # On standard error gRPC tells of the fork.
    assert program.end()[:2] == (0, "")
    row = matrix.row(
        fault,
        section=SECTION,
        inputs=[name.encode() for name in (*OUT, *CHILD, *AFTER)],
        acknowledged=[name.encode() for name in (*OUT, *AFTER)],
        failed=[name.encode() for name in CHILD],
        stored=[message.data for message in server.messages(TOPIC)],
        hedges=server.ledger().hedges,
    )
    assert (row.failed, row.duplicated) == (len(CHILD), 0)
    assert server.ledger().messages == len(OUT) + len(AFTER)
    assert server.ledger().cancelled == 0


def test_the_process_forks(matrix: Matrix) -> None:
    """A child of `fork` is told that it cannot publish; its parent's open bundle is published."""
    with parent(grpc_sees_forks="0") as (server, program, answer):
        assert program.ask("fork", *CHILD) == ["ForkedProcessError", *CHILD]
        assert program.hear() == ["child", "0"]
        assert server.ledger().open == len(OUT)
        answer()
        finish(server, program, "The process forks with requests out, and the child publishes, too", matrix)


def test_the_process_forks_and_grpc_sees_it(matrix: Matrix) -> None:
    """As it comes, gRPC can crash the child when requests are out; its parent is published all the same."""
    with parent(grpc_sees_forks="1") as (server, program, answer):
        said = program.ask("fork", *CHILD)
        if said == ["ForkedProcessError", *CHILD]:
            said = program.hear()
        word, status = said
        assert word == "child"
        assert status == "0" or os.WIFSIGNALED(int(status))
        assert server.ledger().open == len(OUT)
        answer()
        finish(
            server,
            program,
            "The same with gRPC's own fork handlers, which can crash the child",
            matrix,
        )
