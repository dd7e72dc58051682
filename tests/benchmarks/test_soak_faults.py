"""What goes wrong in a soak, and when."""

from __future__ import annotations

import pytest

from benchmarks.soaking.disturber import Disturber
from benchmarks.soaking.faults import BY_NAME, CALM, FAULTS, programme


@pytest.mark.parametrize("service", sorted(FAULTS))
def test_a_programme_fills_its_time_with_all_faults(service: str) -> None:
    """A soak of minutes leaves nothing out, and ends calm."""
    phases = programme(FAULTS[service], 240.0, seed=5)
    assert sum(each.seconds for each in phases) == pytest.approx(240.0)
    names = [each.fault.name for each in phases]
    assert {fault.name for fault in FAULTS[service]} <= set(names)
    assert "idle" in names
    assert phases[-1].fault is CALM
    assert all(each.seconds > 0 for each in phases)


def test_a_seed_makes_the_same_programme_again() -> None:
    """What a soak has found can be looked at again."""
    assert programme(FAULTS["local"], 60.0, 5) == programme(FAULTS["local"], 60.0, 5)
    assert programme(FAULTS["local"], 60.0, 5) != programme(FAULTS["local"], 60.0, 6)


class Recorded:
    """A service and a path that note what is done to them."""

    def __init__(self) -> None:
        self.port = 0
        self.done: list[str] = []
        self.relay = self

    def answer(self, fault: object) -> None:
        """Takes how to answer."""
        self.done.append(f"answer {fault.name}")  # type: ignore[attr-defined]

    def stop(self) -> None:
        """Goes."""
        self.done.append("stop")

    def start(self) -> None:
        """Comes back."""
        self.done.append("start")

    def connections(self) -> list[object]:
        """Has none."""
        return []


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_each_fault_begins_and_ends(name: str) -> None:
    """No fault goes on under the name of another, and none is a name only."""
    recorded = Recorded()
    disturber = Disturber(recorded, recorded, seed=1)  # type: ignore[arg-type]
    disturber.disturb(BY_NAME[name])
    disturber.disturb(CALM)
    disturber.close()
    assert disturber.error is None
    assert recorded.done[0] == "answer calm"
    assert f"answer {name}" in recorded.done
    assert recorded.done.count("stop") == recorded.done.count("start")
    fault = BY_NAME[name]
    acts = disturber._begin.keys() | disturber._again.keys()
    assert bool(fault.replies) + (fault.act in acts) == (fault.name not in {"calm", "idle"})


def test_a_fault_that_cannot_be_made_is_told() -> None:
    """A soak without its faults does not pass for one with them."""

    class Broken(Recorded):
        def start(self) -> None:
            raise OSError("the port is taken")

    broken = Broken()
    disturber = Disturber(broken, broken, seed=1)  # type: ignore[arg-type]
    disturber.disturb(BY_NAME["outage"])
    disturber.close()
    assert str(disturber.error) == "the port is taken"
