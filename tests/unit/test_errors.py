"""Errors: what users may catch, read in logs and send between processes."""

from __future__ import annotations

import copy
import pickle
import sys

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge import errors
from beam_hedge.errors import (
    MAX_DETAILS_BYTES,
    BeamHedgeError,
    InvalidMessageError,
    InvalidSettingError,
    PublishError,
    bounded,
)

TOPIC = "projects/p-test/topics/out"


def _publish_error(details: str = "why", status: grpc.StatusCode = grpc.StatusCode.NOT_FOUND) -> PublishError:
    return PublishError(
        TOPIC,
        status,
        details,
        messages=3,
        request_bytes=400,
        attempts=6,
        retries=2,
        hedges=3,
        hedges_failed=1,
        hedges_throttled=1,
        attempts_cancelled=2,
    )


def test_every_error_is_a_beam_hedge_error() -> None:
    """One except clause catches all that the package raises of its own."""
    own = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == errors.__name__
    ]
    assert len(own) >= 8
    assert all(issubclass(error, BeamHedgeError) for error in own)
    assert issubclass(InvalidSettingError, ValueError)
    assert issubclass(InvalidMessageError, ValueError)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_publish_error_survives_pickling(protocol: int) -> None:
    """An error of a worker process arrives whole at the one that started it."""
    error = _publish_error()
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is PublishError
    assert vars(again) == vars(error)
    assert str(again) == str(error)
    assert vars(copy.copy(error)) == vars(error)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions take notes from Python 3.11 on")
def test_a_publish_error_with_a_note_survives_pickling() -> None:
    """A note that a caller adds on the way does not keep the error from its destination."""
    error = _publish_error()
    error.add_note("in bundle 7")  # type: ignore[attr-defined,unused-ignore]
    again = pickle.loads(pickle.dumps(error))
    assert (again.status, again.attempts) == (error.status, error.attempts)


def test_the_text_of_a_publish_error_says_what_failed_and_what_to_do() -> None:
    """A user reads the topic, the status, the effort made, what to do and what the server said."""
    text = str(_publish_error("no such topic"))
    for part in ("3 messages", "400 B", TOPIC, "NOT_FOUND", "6 attempts", "Create the topic", "no such topic"):
        assert part in text


@pytest.mark.parametrize("status", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_every_status_has_an_advice(status: grpc.StatusCode) -> None:
    """No error leaves the user without a sentence on what to do, even if the server said nothing."""
    text = str(_publish_error("", status))
    assert status.name in text
    assert text.endswith("The server said: nothing")
    assert len(text.split(". ")) >= 3


@pytest.mark.parametrize("letter", ["a", "\u00e9", "\u20ac", "\U0001f600"])
def test_what_the_server_said_is_cut_to_its_bytes(letter: str) -> None:
    """A server that says a lot cannot fill logs and dead letters, and a letter is never cut in half."""
    error = _publish_error(letter * 5000)
    size = len(error.details.encode())
    assert MAX_DETAILS_BYTES - 4 < size <= MAX_DETAILS_BYTES
    assert error.details.endswith("...")
    assert set(error.details.removesuffix("...")) == {letter}
    assert len(str(error).encode()) < 2000


@given(
    text=st.text(st.characters(exclude_categories=()), max_size=80),
    limit=st.integers(min_value=3, max_value=60),
)
def test_a_bounded_text_is_utf_8_within_its_limit(text: str, limit: int) -> None:
    """Any text, lone surrogates included, can be written to a log in at most so many bytes."""
    cut = bounded(text, limit)
    assert len(cut.encode("utf-8")) <= limit
    whole = text.encode("utf-8", "replace").decode()
    assert cut == whole or (cut.endswith("...") and whole.startswith(cut.removesuffix("...")))


def test_a_setting_error_names_field_value_and_what_is_allowed() -> None:
    """A user sees at once which setting is wrong and what to write instead."""
    error = InvalidSettingError("max_tokens", 0, "a whole number from 1 to 250")
    assert str(error) == "max_tokens must be a whole number from 1 to 250, got 0"
    again = pickle.loads(pickle.dumps(error))
    assert (again.field, again.value, again.allowed, str(again)) == (
        error.field,
        error.value,
        error.allowed,
        str(error),
    )


@pytest.mark.parametrize("value", ["x" * 100_000, 10**5000, b"y" * 100_000], ids=["str", "int", "bytes"])
def test_a_setting_error_shows_a_huge_value_in_short(value: object) -> None:
    """A value of any size makes a readable error."""
    assert len(str(InvalidSettingError("field", value, "small"))) < 300
