"""The emulator leaves no process behind, whatever happens to the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress

import pytest

from tests.emulator.process import child_process

SLEEP = ["sleep", "600"]


def _is_running(pid: int) -> bool:
    # An ended process that nobody has waited for yet still has its number: its state tells.
    state = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return state.stdout.strip()[:1] not in {"", "Z"}


def test_it_ends_with_the_block() -> None:
    """A test session that ends normally leaves nothing running."""
    with tempfile.TemporaryFile() as output, child_process(SLEEP, output) as process:
        assert _is_running(process.pid)
    assert not _is_running(process.pid)


def test_it_ends_when_the_block_fails() -> None:
    """A test session that fails leaves nothing running."""
    started = []

    def fail() -> None:
        with tempfile.TemporaryFile() as output, child_process(SLEEP, output) as process:
            started.append(process.pid)
            raise RuntimeError("a test failed")

    with pytest.raises(RuntimeError, match="a test failed"):
        fail()
    [pid] = started
    assert not _is_running(pid)


def test_a_process_that_has_ended_by_itself_is_no_error() -> None:
    """An emulator that crashed is reported by its own error, not by one about ending it."""
    with tempfile.TemporaryFile() as output, child_process(["true"], output) as process:
        # Ended, but not waited for.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert process.returncode == 0


def test_it_ends_when_the_tests_are_killed() -> None:
    """Even a test session that is killed, and can clean up nothing, leaves nothing running."""
    program = (
        "import os, signal, sys, tempfile\n"
        "from tests.emulator.process import child_process\n"
        f"with tempfile.TemporaryFile() as output, child_process({SLEEP!r}, output) as process:\n"
        "    print(process.pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    pid = int(killed.stdout)
    deadline = time.monotonic() + 30
    try:
        while _is_running(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not _is_running(pid)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
