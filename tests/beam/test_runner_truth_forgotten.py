"""A runner that never calls teardown: its process ends all the same, and leaves nothing at the service."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from beam_hedge.testing import NEVER
from tests.server.serving import PATIENCE, TOPIC, serving

if TYPE_CHECKING:
    from beam_hedge.testing import Reply, RequestRecord

ROOT = Path(__file__).parents[2]

# Like a test's patience, for what waits for an interpreter that starts and imports Beam.
STARTUP = 60.0


def never_the_unfinished(record: RequestRecord) -> Reply | None:
    """Answers the finished bundle, and not the one that is out when its process ends."""
    return NEVER if record.messages[0].data == b"unfinished" else None


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("keep", ""),
        ("drop", ""),
        ("keep_in_mid_bundle", "out\n"),
        ("drop_in_mid_bundle", "out\n"),
        ("fail_in_a_pipeline", "True\n"),
    ],
)
def test_a_process_without_teardown_ends_at_once_and_quietly(way: str, said: str) -> None:
    """Neither a publisher that lingers nor a request that is out keeps a worker from ending."""
    with serving(never_the_unfinished, store="answer") as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.beam.truth_program", way],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            if said == "out\n":
                server.wait_for(lambda ledger: ledger.open == 1 and ledger.requests == 2, timeout=STARTUP)
            output, complaints = process.communicate("go on\n", timeout=STARTUP)
        finally:
            process.kill()
            process.wait()
        server.wait_for(lambda ledger: not ledger.open, timeout=PATIENCE)
        assert [message.data for message in server.messages(TOPIC)] == [b"finished"]
    assert (process.returncode, output, complaints) == (0, f"{said}{TOPIC}\n", "")
