"""The matrix counts right, and does not let a lost message pass."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults.row import ROWS_VARIABLE, Matrix, Row

if TYPE_CHECKING:
    from pathlib import Path


def _row(**books: Any) -> Row:
    told = {"acknowledged": [b"a"], "failed": [b"b"], "dead_lettered": [b"c"], "stored": [b"a"], **books}
    return Matrix("test_it").row("a fault", section="A table", inputs=[b"a", b"b", b"c"], hedges=2, **told)


def test_a_row_tells_what_became_of_each_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of the page can add up a row's columns, and copies count as often as they are stored."""
    monkeypatch.setenv(ROWS_VARIABLE, str(tmp_path / "rows"))
    row = _row(stored=[b"a", b"a", b"b", b"a", b"no input"], recovery=0.5)
    assert row == Row("A table", "a fault", "test_it", 3, 1, 1, 1, 0, 2, 2, 0.5)
    [line] = (tmp_path / "rows").read_text(encoding="utf-8").splitlines()
    written = json.loads(line)
    assert written.pop("seconds") >= 0
    assert Row(**written) == row


@pytest.mark.parametrize(
    ("books", "complaint"),
    [
        ({"failed": []}, "nothing of .*b'b'"),
        ({"stored": []}, "not stored: .*b'a'"),
        ({"failed": [b"b", b"a"]}, "too much of .*b'a'"),
        ({"failed": [b"b", b"d"]}, "too much of .*b'd'"),
        ({"failed": [b"b", b"b"]}, "too much of .*b'b'"),
    ],
    ids=["untold", "vanished", "told twice", "not published", "told again"],
)
def test_books_that_do_not_add_up_fail(
    books: dict[str, Any], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row of the page can hide a message that is lost or counted twice."""
    monkeypatch.setenv(ROWS_VARIABLE, str(tmp_path / "rows"))
    with pytest.raises(AssertionError, match=complaint):
        _row(**books)
    assert not (tmp_path / "rows").exists()
