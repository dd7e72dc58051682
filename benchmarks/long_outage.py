"""An outage of 20 s under load: how many hedges it costs, whether all comes through, and how soon it is over.

Eight threads publish single batches and wait for each. Then the service answers nothing, or is gone, while
200 batches wait; then it is back. Run it with `python -m benchmarks.long_outage`; it fails if a message was
lost, if there were more hedges than tokens, or if the median latency is not back to normal within 2 s.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beam_hedge import HedgingPublisher, HedgingSettings, RetrySettings
from beam_hedge.testing import LocalPubSub, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from beam_hedge import PublishOutcome

_TOPIC = "projects/benchmark/topics/out"
_THREADS, _BATCHES = 8, 200
_SETTINGS = HedgingSettings(hedge_delay=0.5, max_tokens=50, initial_tokens=50)
_RETRY = RetrySettings(initial_retry_delay=0.1, max_retry_delay=1, total_timeout=120)
_MS = 1000
_WINDOW, _WINDOWS = 0.5, 8
# Twice the latency of a quiet second: what differs by less is this machine.
_NORMAL = 2.0
_SOON = 2.0


@dataclass(frozen=True)
class Outage:
    """What one outage did.

    Attributes:
        hedges: While it lasted.
        published: Batches that were waiting and were acknowledged in the end.
        stored: Different messages that the server has, of all that were published.
        sent: Different messages that were published.
        before: Median latency before, in ms.
        after: The medians of the half seconds that follow the end, in ms.
    """

    hedges: int
    published: int
    stored: int
    sent: int
    before: float
    after: list[float]

    @property
    def over(self) -> float | None:
        """Seconds from the end of the outage until the median is normal, if it becomes so."""
        for index, each in enumerate(self.after):
            if each <= _NORMAL * self.before:
                return index * _WINDOW
        return None


def run(
    outage: Callable[[LocalPubSub], AbstractContextManager[None]], seconds: float, window: float = _WINDOW
) -> Outage:
    """Publishes before, during and after an outage.

    Args:
        outage: Has the outage while it is entered.
        seconds: How long it lasts.
        window: Seconds of which a median is taken.
    """
    numbers = itertools.count()
    with (
        LocalPubSub() as server,
        server.environment(),
        HedgingPublisher(_TOPIC, _SETTINGS, retry_settings=_RETRY) as publisher,
        ThreadPoolExecutor(_THREADS) as pool,
    ):
        server.create_topic(_TOPIC)

        def publish() -> Future[PublishOutcome]:
            return publisher.publish([b"%d" % next(numbers)])

        def median(length: float) -> float:
            """Returns the median latency of some seconds in which each thread waits for each batch, in ms."""
            until = time.monotonic() + length

            def work(_thread: int) -> list[float]:
                found = []
                while (sent := time.monotonic()) < until:
                    publish().result()
                    found.append(time.monotonic() - sent)
                return found

            return statistics.median(itertools.chain(*pool.map(work, range(_THREADS)))) * _MS

        median(2 * window)
        before = median(4 * window)
        hedges = server.ledger().hedges
        with outage(server):
            waiting = list(pool.map(lambda _: publish(), range(_BATCHES)))
            time.sleep(seconds)
            hedges = server.ledger().hedges - hedges
        after = [median(window) for _ in range(_WINDOWS)]
        published = sum(len(future.result().message_ids) for future in waiting)
        stored = {message.data for message in server.messages(_TOPIC)}
    return Outage(hedges, published, len(stored), next(numbers), before, after)


@contextlib.contextmanager
def _silent(server: LocalPubSub) -> Iterator[None]:
    over = threading.Event()
    server.script = Reply(until=over)
    yield
    server.script = None
    over.set()


@contextlib.contextmanager
def _gone(server: LocalPubSub) -> Iterator[None]:
    server.stop()
    yield
    server.start()


OUTAGES = {"the service answers nothing": _silent, "the service is gone": _gone}


def broken(outage: Outage) -> list[str]:
    """Returns the promises that were broken, in words."""
    found = []
    if outage.hedges > _SETTINGS.max_tokens:
        found.append(f"{outage.hedges} hedges were sent; there were {_SETTINGS.max_tokens} tokens")
    if (outage.published, outage.stored) != (_BATCHES, outage.sent):
        found.append(
            f"{outage.published} of {_BATCHES} batches, {outage.stored} of {outage.sent} messages came"
        )
    if outage.over is None:
        found.append(f"the median latency is {outage.after[-1]:.1f} ms in the end")
    elif outage.over >= _SOON:
        found.append(f"the median latency is normal after {outage.over:.1f} s")
    return found


def main() -> None:
    """Has an outage of each kind, prints what happened, and exits with 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long it lasts; default 20")
    args = parser.parse_args()
    print(
        "| outage | hedges | batches acknowledged | messages stored | p50 before, ms | after, by half second |"
    )
    print("|---|---|---|---|---|---|")
    found = []
    for name, outage in OUTAGES.items():
        result = run(outage, args.seconds)
        after = ", ".join(f"{each:.1f}" for each in result.after)
        print(
            f"| {name} | {result.hedges} | {result.published} of {_BATCHES} | {result.stored} of {result.sent} "
            f"| {result.before:.1f} | {after} |",
            flush=True,
        )
        found += [f"{name}: {each}" for each in broken(result)]
    if found:
        raise SystemExit("\n".join(found))
    print("no promise was broken")


if __name__ == "__main__":
    main()
