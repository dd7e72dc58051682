"""What the text after a flag may be: each function reads one kind of value, or says what is allowed."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from google.cloud.pubsub_v1.types import LimitExceededBehavior

if TYPE_CHECKING:
    from collections.abc import Callable

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
# Dataflow hands numbers to workers as 3.0.
_WHOLE = re.compile(r"([+-]?[0-9]{1,100})(?:\.0)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)")
_DURATION = re.compile(rf"(?P<number>{_NUMBER.pattern})\s*(?P<unit>ms|s|m|h|)", re.IGNORECASE | re.ASCII)
_SECONDS = {"": Decimal(1), "ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600)}
_BEHAVIORS = {behavior.name.lower(): behavior for behavior in LimitExceededBehavior}


def boolean(text: str) -> bool:
    """Reads a word: true, yes, on, 1, or false, no, off, 0, in any case."""
    word = text.strip().lower()
    if word not in _TRUE + _FALSE:
        raise ArgumentTypeError(f"must be true or false, got {text!r}")
    return word in _TRUE


def whole(text: str) -> int:
    """Reads a whole number in plain digits."""
    match = _WHOLE.fullmatch(text.strip())
    if match is None:
        raise ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(match[1])


def number(text: str) -> float:
    """Reads a decimal number."""
    if not _NUMBER.fullmatch(text.strip()):
        raise ArgumentTypeError(f"must be a number, got {text!r}")
    return float(text)


def duration(text: str) -> float:
    """Reads a number with the unit ms, s, m or h, or without one, as seconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ArgumentTypeError(f"must be a duration such as 0.5, 500ms or 2s, got {text!r}")
    # Decimal: 0.7 s and 700 ms are the same float.
    return float(Decimal(match["number"]) * _SECONDS[match["unit"].lower()])


def behavior(text: str) -> str:
    """Reads the name of a `LimitExceededBehavior`, in any case."""
    word = text.strip().lower()
    if word not in _BEHAVIORS:
        raise ArgumentTypeError(f"must be one of {', '.join(sorted(_BEHAVIORS))}, got {text!r}")
    return word


def to_behavior(word: str) -> LimitExceededBehavior:
    """Returns the `LimitExceededBehavior` of a name that `behavior` has read."""
    return _BEHAVIORS[word]


def one_of(*words: str) -> Callable[[str], str]:
    """Makes a reader of one of several words, in any case."""

    def read(text: str) -> str:
        word = text.strip().lower()
        if word not in words:
            raise ArgumentTypeError(f"must be one of {', '.join(words)}, got {text!r}")
        return word

    return read


def regex(text: str) -> str:
    """Reads a regular expression of Python."""
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ArgumentTypeError(f"must be a regular expression, got {text!r}: {error}") from None
    return text


def checked(parse: Callable[[str], Any]) -> Callable[[str], str]:
    """Makes a reader that keeps a text which another function can parse.

    The text is what is kept, because Beam passes options on as JSON and reads them back as flags.

    Args:
        parse: Raises `ValueError`, whose text says what is allowed.
    """

    def read(text: str) -> str:
        try:
            parse(text)
        except ValueError as error:
            raise ArgumentTypeError(f"{error}, got {text!r}") from None
        return text

    return read
