"""The model-based test can see: a mistake that is planted in the library does not escape it."""

from __future__ import annotations

import sys

import pytest

import beam_hedge.attempts
from tests.model.bugs import BUGS, Bug
from tests.model.planted import library_with
from tests.model.search import search

# A mistake ends the search, so only one that escapes costs this many. Those that find most come first.
_SEEDS = (11, 10, 5, 2, 3, 4, 8, 1)
_NONE = Bug("no harm", "attempts", "MAX_HEDGE_TIMEOUT = 10.0", "MAX_HEDGE_TIMEOUT = 10.0")


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.harm)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    """What the model-based test promises about the library is looked at, and not only said."""
    with library_with(bug) as machine, pytest.raises(AssertionError):
        search(machine.Machine, _SEEDS, explain=False)


def test_the_library_itself_is_not_accused() -> None:
    """What is found is the planted bug, and not the way in which it was planted."""
    with library_with(_NONE) as machine:
        search(machine.Machine, _SEEDS[:1], explain=False)


def test_the_library_is_back_afterwards() -> None:
    """Planting leaves nothing behind that another test could meet."""
    mine = beam_hedge.attempts
    with library_with(BUGS[0]):
        assert sys.modules["beam_hedge.attempts"] is not mine
    assert sys.modules["beam_hedge.attempts"] is mine is beam_hedge.attempts
