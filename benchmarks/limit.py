"""The least latency that hedging could reach: no overhead at all, and as many tokens as it wants."""

from __future__ import annotations

import heapq
import itertools
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def limit(
    times: Sequence[float],
    draws: Sequence[float],
    hedge_delay: float,
    at_least: Callable[[float], float] = lambda _now: 0.0,
) -> tuple[list[float], list[int]]:
    """Plays a load through: each attempt takes the server's next latency in the moment in which it is sent.

    Args:
        times: When batches are sent, in seconds.
        draws: The latencies that the server drew, in seconds, in order. Should hedging without a budget need
            more of them, the first are taken again.
        hedge_delay: Seconds after which a batch that has no answer is sent once more.
        at_least: Returns the seconds that an attempt takes at least if it is sent at a time.

    Returns:
        The latency of each batch in seconds, and its number of attempts.
    """
    more: Iterator[float] = itertools.cycle(draws)
    answered = [math.inf] * len(times)
    attempts = [0] * len(times)
    due = [(at, number) for number, at in enumerate(times)]
    heapq.heapify(due)
    while due:
        now, number = heapq.heappop(due)
        # An answer that comes in the moment in which a hedge is due wins.
        if answered[number] <= now:
            continue
        attempts[number] += 1
        answered[number] = min(answered[number], now + max(next(more), at_least(now)))
        heapq.heappush(due, (now + hedge_delay, number))
    return [end - at for end, at in zip(answered, times, strict=True)], attempts
