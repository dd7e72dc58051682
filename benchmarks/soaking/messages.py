"""The messages of a soak: each says who published it and its number, and so is told from all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

PROJECT = "projects/soak"
BUNDLES, DIRECT = (f"{PROJECT}/topics/{name}" for name in ("bundles", "direct"))
TOPICS = (BUNDLES, DIRECT)

# What the service refuses wherever it finds it.
POISON = b" the service refuses this"
_NUMBER_BITS = 32
_MOST_PADDING = 200


def subscription_of(topic: str) -> str:
    """Returns the subscription through which a topic is looked at."""
    return topic.replace("/topics/", "/subscriptions/")


def make_data(producer: int, number: int, rng: random.Random, *, poison: bool = False) -> bytes:
    """Makes the data of one message, of random length."""
    data = b"%d %d %s" % (producer, number, b"x" * rng.randrange(_MOST_PADDING))
    return data + POISON if poison else data


def id_of(data: bytes) -> tuple[int, int]:
    """Returns the producer and the number of a message."""
    producer, number, _padding = data.split(b" ", 2)
    return int(producer), int(number)


def pack(producer: int, number: int) -> int:
    """Makes one integer of an id."""
    return producer << _NUMBER_BITS | number


def unpack(packed: int) -> tuple[int, int]:
    """Takes it apart again."""
    return packed >> _NUMBER_BITS, packed & (1 << _NUMBER_BITS) - 1
