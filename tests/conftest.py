"""What every test needs: a clean environment, and an answer to "did this test leave a thread running?"."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

_THREAD_SECONDS = 5

# One run is like the next, on a slow machine too; `--hypothesis-profile=search` looks further.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("ci")


def pytest_configure() -> None:
    """Forget an emulator that happens to be set: no test may reach one that it did not start."""
    os.environ.pop("PUBSUB_EMULATOR_HOST", None)


@pytest.fixture(autouse=True)
def no_leaked_threads() -> Iterator[None]:
    """Fail a test that leaves a thread which would keep a user's program from ending."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + _THREAD_SECONDS
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon:
            thread.join(max(0.0, deadline - time.monotonic()))
    leaked = [thread for thread in set(threading.enumerate()) - before if not thread.daemon]
    if leaked:
        pytest.fail(f"threads that still run, and are no daemons: {leaked}")
