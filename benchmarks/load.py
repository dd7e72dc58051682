"""An open-loop load: send times are fixed beforehand, and a latency counts from the time that was fixed.

A publisher that falls behind is charged for it. So is one that shares a machine with a load generator that
falls behind, and therefore the generator says how late it was itself.
"""

from __future__ import annotations

import gc
import random
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from demo.result import percentile

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Sequence

    from beam_hedge import HedgingPublisher, PublishOutcome

MESSAGE = b"x" * 1024
_MS = 1000


def even(rate: float, seconds: float) -> list[float]:
    """Returns send times, in seconds from the beginning, at equal distances.

    Args:
        rate: Requests a second.
        seconds: How long.
    """
    return [number / rate for number in range(round(rate * seconds))]


def poisson(rate: float, seconds: float, seed: int) -> list[float]:
    """Returns send times of which each is independent of the others, as from many users.

    Args:
        rate: Requests a second, on average.
        seconds: How long.
        seed: The seed of the distances.
    """
    rng = random.Random(seed)
    times: list[float] = []
    now = rng.expovariate(rate)
    while now < seconds:
        times.append(now)
        now += rng.expovariate(rate)
    return times


def bursts(rate: float, seconds: float, size: int) -> list[float]:
    """Returns send times in groups: so many at once, and then none until the rate is met.

    Args:
        rate: Requests a second, on average.
        seconds: How long.
        size: The requests of a group.
    """
    return [number // size * size / rate for number in range(round(rate * seconds))]


@dataclass(frozen=True)
class Sent:
    """One request.

    Attributes:
        at: When it was to be sent, in seconds from the beginning.
        latency: Seconds from then to its outcome.
        late: Seconds from then to when the generator came to it.
        outcome: What became of it; `None` if it failed.
    """

    at: float
    latency: float
    late: float
    outcome: PublishOutcome | None


@dataclass(frozen=True)
class Run:
    """What became of a load, in the order in which it was sent."""

    sent: Sequence[Sent]
    latencies_ms: list[float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "latencies_ms", sorted(each.latency * _MS for each in self.sent))

    def since(self, begin: float) -> Run:
        """Returns the part that was to be sent from `begin` on, in seconds from the beginning."""
        return Run([each for each in self.sent if each.at >= begin])

    def percentile_ms(self, percent: float) -> float:
        """Returns the latency in ms that so many percent of the requests did not exceed."""
        return percentile(self.latencies_ms, percent)

    @property
    def failed(self) -> int:
        """Requests that were not published."""
        return sum(each.outcome is None for each in self.sent)

    @property
    def hedges(self) -> int:
        """Hedges sent for those that were published."""
        return sum(each.outcome.hedges for each in self.sent if each.outcome)

    @property
    def extra_percent(self) -> float:
        """Hedges and retries for each hundred requests."""
        return 100 * sum(each.outcome.attempts - 1 for each in self.sent if each.outcome) / len(self.sent)

    @property
    def late_p99_ms(self) -> float:
        """How late the generator itself was, in ms: 99 % of the requests were handed over in time or sooner."""
        return percentile(sorted(each.late * _MS for each in self.sent), 99)


def offer(
    publisher: HedgingPublisher,
    times: Sequence[float],
    message: bytes = MESSAGE,
    on_begin: Callable[[], object] = lambda: None,
) -> Run:
    """Publishes one message at each of the given times and waits for all outcomes.

    Args:
        publisher: Where to.
        times: Seconds from the beginning, in order.
        message: What.
        on_begin: Called at the beginning.
    """
    # What was imported would otherwise be looked through for garbage again and again, for 100 ms each time.
    gc.collect()
    gc.freeze()
    latencies = [0.0] * len(times)
    lateness: list[float] = []
    futures: list[concurrent.futures.Future[PublishOutcome]] = []
    all_done = threading.Semaphore(0)
    on_begin()
    begin = time.monotonic()
    for number, at in enumerate(times):
        scheduled = begin + at
        pause = scheduled - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        lateness.append(time.monotonic() - scheduled)

        def done(_future: object, number: int = number, scheduled: float = scheduled) -> None:
            latencies[number] = time.monotonic() - scheduled
            all_done.release()

        future = publisher.publish([message])
        futures.append(future)
        future.add_done_callback(done)
    for _ in times:
        all_done.acquire()
    outcomes = [None if future.exception() else future.result() for future in futures]
    return Run([Sent(*each) for each in zip(times, latencies, lateness, outcomes, strict=True)])
