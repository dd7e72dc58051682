"""What a soak looks for: pure functions that say in words which promise is broken."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from benchmarks.soaking.ledger import Fate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beam_hedge import HedgingSettings
    from benchmarks.soaking.ledger import Books

# A message that is told to be stored is at once. What it takes to see it is an outage, at most.
MISSING_SECONDS = 30.0
_PERMITS = re.compile(r"(-?\d+) batches, (-?\d+) messages, (-?\d+) B out")
_MILLI = 1000


def check_sums(name: str, books: Books) -> list[str]:
    """Looks for messages whose callers were told nothing, or two things."""
    found = []
    told = sum(books.told.values())
    if books.inputs != told + books.out:
        found.append(
            f"{name}: {books.inputs} messages went in, and {told} + {books.out} are accounted for "
            "(acknowledged, failed, dead letters, cancelled; and out)"
        )
    if books.out != books.marked_out:
        found.append(f"{name}: {books.out} messages should be out, and {books.marked_out} are")
    if books.told_again:
        found.append(f"{name}: callers were told twice of {books.told_again} messages")
    if books.misreported:
        found.append(f"{name}: outcomes tell of {books.misreported} messages more or less than were published")
    return found


def check_waits(name: str, books: Books, most: float) -> list[str]:
    """Looks for callers that wait for longer than `most` seconds."""
    if books.oldest <= most:
        return []
    return [f"{name}: somebody has waited for {books.oldest:.0f} s, and {most:.0f} are the most"]


def check_budget(name: str, hedges: int, books: Books, settings: HedgingSettings) -> list[str]:
    """Looks for hedges that nothing paid for.

    Args:
        name: Of the publisher.
        hedges: Those that the service has counted, before the books were read.
        books: What callers were told. A batch that may have been published without their being told, and a
            message that is out, count as published.
        settings: Of the publisher.
    """
    hedges = max(hedges, books.hedges)
    published = books.published + books.perhaps + books.out
    most = settings.initial_tokens * _MILLI + round(settings.refill_ratio * _MILLI) * published
    if hedges * _MILLI <= most:
        return []
    return [f"{name}: {hedges} hedges, and {published} published batches pay for {most // _MILLI}"]


def check_tokens(name: str, milli_tokens: int, settings: HedgingSettings) -> list[str]:
    """Looks for a bucket that holds less than nothing, or more than it can."""
    if 0 <= milli_tokens <= settings.max_tokens * _MILLI:
        return []
    return [f"{name}: the bucket holds {milli_tokens / _MILLI} of {settings.max_tokens} tokens"]


def check_permits(name: str, publisher: str, *, idle: bool) -> list[str]:
    """Looks for flow-control permits that were given back twice, or not at all.

    Args:
        name: Of the publisher.
        publisher: What `repr()` says of it.
        idle: Whether nothing is out.
    """
    match = _PERMITS.search(publisher)
    if match is None:
        return [f"{name}: cannot read permits from {publisher}"]
    numbers = [int(each) for each in match.groups()]
    if min(numbers) < 0:
        return [f"{name}: permits were given back twice: {match[0]}"]
    if idle and any(numbers):
        return [f"{name}: permits were not given back: {match[0]}, and nothing is out"]
    return []


def check_missing(missing: Sequence[float], most: float = MISSING_SECONDS) -> list[str]:
    """Looks for messages that are acknowledged and not stored.

    Args:
        missing: For how many seconds each message has been missing.
        most: For how many it may be.
    """
    lost = sum(seconds >= most for seconds in missing)
    return [f"{lost} messages were acknowledged and are not stored"] if lost else []


def acknowledged(books: Books) -> int:
    """Returns how many messages were acknowledged."""
    return books.told[Fate.ACKNOWLEDGED]
