"""Kinds of parameters: how the console asks for one, and what a value looks like.

The expressions are checked by the console and by Dataflow, before a launcher starts; the pipelines then check
values fully. So an expression takes every value that the pipelines take, and refuses what they could not even
read. It uses only what all dialects of regular expressions have in common.
"""

from __future__ import annotations

from dataclasses import dataclass

_PROJECT = r"(?:[a-z0-9][a-z0-9.-]*[a-z0-9]:)?[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_TOPIC_ID = r"[A-Za-z](?:[A-Za-z0-9._~+-]|%[0-9A-Fa-f]{2}){0,254}"
_NUMBER = r"\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_PAIR = r"[^=,]+=[^,]*"
_OBJECT = r"\s*\{[\s\S]*\}\s*"


@dataclass(frozen=True)
class Kind:
    """How one kind of parameter is entered.

    Attributes:
        param_type: A `ParameterType` of Dataflow's API.
        pattern: What a value matches that is not blank. `None`: anything.
        choices: The values that can be chosen, each with a few words on it. Empty: the value is typed in.
    """

    param_type: str
    pattern: str | None = None
    choices: tuple[tuple[str, str], ...] = ()


def _words(*words: str) -> str:
    """Returns an expression for one of several words, in any case."""
    spelled = (
        "".join(f"[{each}{each.upper()}]" if each.isalpha() else each for each in word) for word in words
    )
    return rf"\s*(?:{'|'.join(spelled)})\s*"


TEXT = Kind("TEXT")
BOOLEAN = Kind("BOOLEAN", _words("true", "yes", "on", "1", "false", "no", "off", "0"))
WHOLE = Kind("NUMBER", r"\s*\+?[0-9]+\s*")
NUMBER = Kind("NUMBER", rf"\s*{_NUMBER}\s*")
DURATION = Kind("TEXT", rf"\s*{_NUMBER}\s*(?:[mM][sS]|[sSmMhH])?\s*")
TOPIC = Kind("PUBSUB_TOPIC", rf"projects/{_PROJECT}/topics/{_TOPIC_ID}")
SUBSCRIPTION = Kind(
    "PUBSUB_SUBSCRIPTION", r"projects/[a-z0-9:.-]+/subscriptions/[A-Za-z][A-Za-z0-9._~+%-]{2,254}"
)
READ_FILES = Kind("GCS_READ_FILE", r"gs://[^\n\r]+")
WRITE_FILE = Kind("GCS_WRITE_FILE", r"gs://[^\n\r]+")
ENDPOINT = Kind("TEXT", r"[A-Za-z0-9.-]+(?::[0-9]{1,5})?")
PAIRS = Kind("TEXT", rf"(?:{_OBJECT}|{_PAIR}(?:,{_PAIR})*)")


def choice(**choices: str) -> Kind:
    """Makes a kind of parameter that is one of several words, in any case.

    Args:
        choices: What to say about each word.
    """
    return Kind("ENUM", _words(*choices), tuple(choices.items()))
