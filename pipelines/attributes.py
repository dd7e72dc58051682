"""Attributes of messages: what Pub/Sub takes, how flags write them, and how a relay changes them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_ATTRIBUTES = 100
MAX_KEY_BYTES = 256
MAX_VALUE_BYTES = 1024
RESERVED = "goog"


def why_no_name(name: str) -> str | None:
    """Returns what keeps a text from being an attribute's name, or None."""
    size = _bytes_of(name)
    if size is None:
        return "is text that UTF-8 cannot hold"
    if size == 0:
        return "is empty"
    if size > MAX_KEY_BYTES:
        return f"has {size} B: at most {MAX_KEY_BYTES} B are allowed"
    if name.startswith(RESERVED):
        return f"starts with {RESERVED!r}, which Pub/Sub reserves"
    return None


def why_no_value(value: str) -> str | None:
    """Returns what keeps a text from being an attribute's value, or None."""
    size = _bytes_of(value)
    if size is None:
        return "is text that UTF-8 cannot hold"
    if size > MAX_VALUE_BYTES:
        return f"has {size} B: at most {MAX_VALUE_BYTES} B are allowed"
    return None


def name(text: str) -> str:
    """Reads an attribute's name.

    Raises:
        ValueError: No attribute can be called that.
    """
    if (reason := why_no_name(text)) is not None:
        raise ValueError(f"must be the name of an attribute: it {reason}")
    return text


def names(text: str) -> tuple[str, ...]:
    """Reads attributes' names with commas between them; spaces around a name are no part of it.

    Raises:
        ValueError: One of them cannot be an attribute's name, or comes twice, or they are too many.
    """
    found = tuple(part.strip() for part in text.split(","))
    for each in found:
        if (reason := why_no_name(each)) is not None:
            raise ValueError(f"must be names of attributes with commas between them: {each!r} {reason}")
    if len(set(found)) < len(found):
        raise ValueError("must be different names of attributes")
    if len(found) > MAX_ATTRIBUTES:
        raise ValueError(f"must be at most {MAX_ATTRIBUTES} names of attributes")
    return found


def additions(text: str) -> dict[str, str]:
    """Reads attributes to add: `key=value` with commas between them, or a JSON object.

    Raises:
        ValueError: They are written in another way, or are none that Pub/Sub takes.
    """
    found = _pairs(text)
    for key, value in found.items():
        if (reason := why_no_name(key)) is not None:
            raise ValueError(f"must be attributes: the name {key!r} {reason}")
        if (reason := why_no_value(value)) is not None:
            raise ValueError(f"must be attributes: the value of {key!r} {reason}")
    if len(found) > MAX_ATTRIBUTES:
        raise ValueError(f"must be at most {MAX_ATTRIBUTES} attributes")
    return found


def renames(text: str) -> dict[str, str]:
    """Reads attributes to rename: `old=new` with commas between them, or a JSON object.

    The old name can be one that Pub/Sub reserves: renaming it is a way to keep it.

    Raises:
        ValueError: They are written in another way, a new name cannot be one, or two are the same.
    """
    found = _pairs(text)
    for old, new in found.items():
        if not old:
            raise ValueError("must be names of attributes: an old name is empty")
        if (reason := why_no_name(new)) is not None:
            raise ValueError(f"must be names of attributes: the new name {new!r} {reason}")
    if len(set(found.values())) < len(found):
        raise ValueError("must give different new names")
    return found


@dataclass(frozen=True)
class Changed:
    """A message's attributes after changes, and what was lost in them.

    Attributes:
        attributes: What the message has now.
        reserved: How many attributes were left out because Pub/Sub reserves their names.
        replaced: How many attributes gave way to one that was renamed or added.
    """

    attributes: dict[str, str]
    reserved: int
    replaced: int


@dataclass(frozen=True)
class Changes:
    """What a relay does to attributes.

    All renames are done at once, so that two attributes can swap their names; then attributes whose names
    Pub/Sub reserves are left out; then attributes are added. An attribute that is renamed or added takes the
    place of one that has its new name already.

    Attributes:
        renames: New names by old ones. A message without the attribute is left as it is.
        additions: Attributes that every message gets.
    """

    renames: Mapping[str, str]
    additions: Mapping[str, str]

    def apply(self, attributes: Mapping[str, str], own: Mapping[str, str]) -> Changed:
        """Returns the attributes of a message as they are to be published.

        Args:
            attributes: Its attributes as they came.
            own: Attributes that only this message gets.
        """
        kept = {key: value for key, value in attributes.items() if key not in self.renames}
        renamed = {new: attributes[old] for old, new in self.renames.items() if old in attributes}
        after = {**kept, **renamed}
        usable = {key: value for key, value in after.items() if not key.startswith(RESERVED)}
        added = {**self.additions, **own}
        changed = {**usable, **added}
        return Changed(
            changed,
            reserved=len(after) - len(usable),
            replaced=len(attributes) - len(after) + len(usable) + len(added) - len(changed),
        )


def _pairs(text: str) -> dict[str, str]:
    if text.lstrip().startswith("{"):
        return _object(text)
    found: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(
                f"must be key=value, with commas between several, or a JSON object: {part!r} has no '='"
            )
        _put(found, key.strip(), value.strip())
    return found


def _object(text: str) -> dict[str, str]:
    def collect(members: list[tuple[str, Any]]) -> dict[str, str]:
        found: dict[str, str] = {}
        for key, value in members:
            if not isinstance(value, str):
                raise ValueError(f"must be a JSON object of texts: {key!r} has another value")  # noqa: TRY004
            _put(found, key, value)
        return found

    try:
        found: dict[str, str] = json.loads(text, object_pairs_hook=collect)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"must be key=value, with commas between several, or a JSON object: {error}") from None
    return found


def _put(found: dict[str, str], key: str, value: str) -> None:
    if key in found:
        raise ValueError(f"must name each attribute once: {key!r} comes twice")
    found[key] = value


def _bytes_of(text: str) -> int | None:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return None
