"""Google's real Pub/Sub emulator, started once for the tests in this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.emulator.emulator import running_emulator
from tests.emulator.plan import decide, in_ci, look_around

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.emulator.emulator import Emulator


@pytest.fixture(scope="session")
def emulator() -> Iterator[Emulator]:
    """Return the running emulator. It ends with the session."""
    found = look_around()
    plan = decide(found, ci=in_ci())
    if plan.action == "skip":
        pytest.skip(plan.reason)
    if plan.action == "fail" or found.java is None or found.jar is None:
        pytest.fail(plan.reason)
    with running_emulator(found.java, found.jar) as running:
        yield running


@pytest.fixture
def emulator_host(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """Return the emulator, with the environment pointing every Pub/Sub client to it."""
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", emulator.endpoint)
    return emulator
