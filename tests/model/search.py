"""How the machine is run: the same steps in each run of the tests, on a machine of any speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hypothesis.stateful import RuleBasedStateMachine

# Typed in some of hypothesis' releases and not in others.
_run: Any = run_state_machine_as_test
EXAMPLES = 80


def search(machine: type[RuleBasedStateMachine], seeds: Iterable[int], *, explain: bool = True) -> None:
    """Runs a machine until a check fails, or all examples are through.

    Args:
        machine: The machine.
        seeds: Where searches begin. Each is `EXAMPLES` runs of about 40 steps, which lead from one to another,
            so several short searches see more than a long one.
        explain: Whether a failure is made as short as possible before it is shown.
    """
    chosen = settings(
        max_examples=EXAMPLES,
        stateful_step_count=40,
        phases=list(Phase) if explain else [Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    for number in seeds:
        # A class of its own: a seed is given once.
        seeded = seed(number)(type(machine.__name__, (machine,), {}))
        _run(seeded, settings=chosen)
