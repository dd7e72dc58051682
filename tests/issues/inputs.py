"""Inputs from the field that are published to the embedded Pub/Sub and to Google's emulator alike."""

from __future__ import annotations

from typing import Any

from apache_beam.io.gcp.pubsub import PubsubMessage

# Attributes that break a limit, and what the error has to name.
BAD_ATTRIBUTES: dict[str, tuple[dict[Any, Any], list[str]]] = {
    "long value": ({"k": "\u00e9" * 600}, ["'k'", "1200 B"]),
    "long key": ({"\u043a\u043b\u044e\u0447" * 40: "v"}, ["\u043a\u043b\u044e\u0447", "320 B"]),
    "int": ({"n": 1}, ["'n'", "int"]),
    "bool": ({"b": True}, ["'b'", "bool"]),
    "None": ({"x": None}, ["'x'", "NoneType"]),
    "surrogate": ({"s": "\ud800"}, ["'s'", "surrogate"]),
}
# 1,024 bytes, the most that a value may have.
LONGEST_VALUE = {"k": "\u00e9" * 512}

# Two messages without data and attributes among three that are fine.
WITH_EMPTY_ONES = [
    PubsubMessage(b"a", {}),
    PubsubMessage(b"", {}),
    PubsubMessage(b"", None),
    PubsubMessage(None, {"a": "1"}),
    PubsubMessage(b"c", {}),
]

# Attributes that are named as arguments of functions that publish.
NAMED_AS_ARGUMENTS = {
    "topic": "t",
    "data": "d",
    "ordering_key": "z",
    "retry": "no",
    "timeout": "5",
    "self": "s",
}

TEXTS = ["a", "YWJj", "\u00e9"]


def fitting_data(topic: str) -> bytes:
    """Returns the largest payload that a request to a topic can carry.

    A request holds the topic and the message, each behind a tag and its length (1 byte, and 4 for such a
    message), and in the message the payload behind another tag and length.
    """
    return b"x" * (10_000_000 - (2 + len(topic)) - 2 * (1 + 4))
