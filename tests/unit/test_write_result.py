"""What the sink gives to later steps, and what it says when that was not asked for."""

from __future__ import annotations

from typing import Any, cast

import pytest

from beam_hedge.write_result import WriteResult

OUTCOMES = cast("Any", object())
DEAD_LETTERS = cast("Any", object())


def test_outputs_that_were_asked_for_are_given() -> None:
    """Later steps get exactly the outputs of the write step, each under its own name."""
    result = WriteResult(OUTCOMES, DEAD_LETTERS)
    assert result.published is OUTCOMES
    assert result.failed is DEAD_LETTERS


@pytest.mark.parametrize(
    ("result", "output", "argument"),
    [
        (WriteResult(None, DEAD_LETTERS), "published", "with_outcomes=True"),
        (WriteResult(OUTCOMES, None), "failed", "dead_letter=True"),
        (WriteResult(None, None), "published", "with_outcomes=True"),
        (WriteResult(None, None), "failed", "dead_letter=True"),
    ],
)
def test_an_output_that_was_not_asked_for_names_the_argument(
    result: WriteResult, output: str, argument: str
) -> None:
    """A user who forgot an argument reads which one, instead of that None has no such method."""
    with pytest.raises(ValueError, match=rf"^{output} is there only with .*{argument}"):
        getattr(result, output)


@pytest.mark.parametrize(
    ("result", "output", "expected"),
    [
        (WriteResult(OUTCOMES, None), "published", OUTCOMES),
        (WriteResult(None, DEAD_LETTERS), "failed", DEAD_LETTERS),
    ],
)
def test_either_output_comes_without_the_other(result: WriteResult, output: str, expected: object) -> None:
    """Asking for outcomes does not take asking for dead letters, nor the other way round."""
    assert getattr(result, output) is expected
