"""Which messages of a refused batch are to blame: splits it until they are alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import grpc

from beam_hedge.errors import PublishError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from beam_hedge.outcome import PublishOutcome

T = TypeVar("T")

# So many messages refused one by one, and none accepted: not the messages are to blame.
_HOPELESS = 10


@dataclass
class Isolated(Generic[T]):
    """What became of a refused batch's messages.

    Attributes:
        published: The parts that the service took after all, each with its outcome.
        refused: The messages that it refuses even alone, each with its error.
    """

    published: list[tuple[PublishOutcome, Sequence[T]]] = field(default_factory=list)
    refused: list[tuple[PublishError, T]] = field(default_factory=list)


def is_refusal_of_a_message(error: PublishError) -> bool:
    """Tells whether a message can be to blame: it cannot for a topic or a permission that is missing."""
    return error.status is grpc.StatusCode.INVALID_ARGUMENT


def isolate(
    refusal: PublishError, messages: Sequence[T], publish: Callable[[Sequence[T]], PublishOutcome]
) -> Isolated[T]:
    """Publishes what can be published of a refused batch.

    A batch of n messages with one culprit takes 2 log2(n) more requests.

    Args:
        refusal: Why the batch was refused.
        messages: Its messages.
        publish: Publishes some of them as a new batch.

    Returns:
        The parts that were published, and the messages that were refused.

    Raises:
        PublishError: Every part is refused (and there is more than one message), or a part failed for another
            reason.
    """
    found: Isolated[T] = Isolated()
    if len(messages) == 1:
        found.refused.append((refusal, messages[0]))
        return found
    parts = _halves(messages)
    while parts:
        part = parts.pop()
        error = _try(part, publish, found)
        if error is None:
            continue
        if len(part) > 1:
            parts += _halves(part)
            continue
        found.refused.append((error, part[0]))
        if not found.published and len(found.refused) >= _HOPELESS:
            # The rest gets one chance, whole, before all is given up.
            refused = [rest for rest in parts if _try(rest, publish, found) is not None]
            if not found.published:
                raise error
            parts = [half for rest in refused for half in (_halves(rest) if len(rest) > 1 else [rest])]
    if not found.published:
        raise found.refused[-1][0]
    return found


def _try(
    part: Sequence[T], publish: Callable[[Sequence[T]], PublishOutcome], found: Isolated[T]
) -> PublishError | None:
    """Publishes a part whole; returns the refusal if there is one."""
    try:
        found.published.append((publish(part), part))
    except PublishError as error:
        if is_refusal_of_a_message(error):
            return error
        raise
    return None


def _halves(messages: Sequence[T]) -> list[Sequence[T]]:
    middle = len(messages) // 2
    # The last is taken first.
    return [messages[middle:], messages[:middle]]
