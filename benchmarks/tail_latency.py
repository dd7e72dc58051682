"""Publish latency on the workload that Google published for its Rust client.

1 KiB messages, one a request, 200 a second, answered in 5 ms (95 %), 300 ms (4 %) and 4 s (1 %).

The load is open loop: send times are fixed beforehand and latency counts from the scheduled time, so a
publisher that falls behind is charged for it. The server runs in a process of its own. Run it with
`python -m benchmarks.tail_latency`.
"""

from __future__ import annotations

import argparse
import math
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beam_hedge import HedgingPublisher, HedgingSettings
from benchmarks.server import served_topic

if TYPE_CHECKING:
    from beam_hedge import PublishOutcome

_MESSAGE = b"x" * 1024
_HEDGED = HedgingSettings(hedge_delay=0.1, max_tokens=50, refill_ratio=0.1)


@dataclass(frozen=True)
class Result:
    """Latencies in seconds, sorted, and what was sent for them."""

    latencies: list[float]
    outcomes: list[PublishOutcome]

    def percentile(self, percent: float) -> float:
        """Returns the latency that `percent` of the requests did not exceed, in ms."""
        return self.latencies[math.ceil(len(self.latencies) * percent / 100) - 1] * 1000

    @property
    def extra_requests(self) -> float:
        """Returns hedges and retries, in percent of the batches."""
        return 100 * sum(outcome.attempts - 1 for outcome in self.outcomes) / len(self.outcomes)


def measure(
    settings: HedgingSettings | None, *, rate: float, warm_up: float, duration: float, seed: int
) -> Result:
    """Publishes at a fixed rate for `warm_up` + `duration` seconds and keeps the latencies of the latter."""
    latencies: list[float] = []
    outcomes: list[PublishOutcome] = []
    with served_topic("tail", seed) as topic, HedgingPublisher(topic, settings) as publisher:
        publisher.publish([b"opens the connection"]).result()
        begin = time.monotonic() + 0.1
        all_done = threading.Semaphore(0)
        total = int(rate * (warm_up + duration))
        for number in range(total):
            scheduled = begin + number / rate
            time.sleep(max(0.0, scheduled - time.monotonic()))

            def done(future: object, scheduled: float = scheduled) -> None:
                if scheduled >= begin + warm_up:
                    latencies.append(time.monotonic() - scheduled)
                    outcomes.append(future.result())  # type: ignore[attr-defined]
                all_done.release()

            publisher.publish([_MESSAGE]).add_done_callback(done)
        for _ in range(total):
            all_done.acquire()
    return Result(sorted(latencies), outcomes)


def main() -> None:
    """Prints one row for each way of publishing."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second")
    parser.add_argument("--warm_up", type=float, default=5.0, help="seconds")
    parser.add_argument("--duration", type=float, default=30.0, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print("| | p50 ms | p99 ms | p99.9 ms | max ms | extra requests |\n|---|---|---|---|---|---|")
    for name, settings in (("no hedging", None), ("hedged", _HEDGED)):
        result = measure(settings, rate=args.rate, warm_up=args.warm_up, duration=args.duration, seed=args.seed)
        p50, p99, p999, most = (result.percentile(percent) for percent in (50, 99, 99.9, 100))
        print(
            f"| {name} | {p50:.2f} | {p99:.1f} | {p999:.1f} | {most:.0f} | +{result.extra_requests:.2f} % |",
            flush=True,
        )


if __name__ == "__main__":
    main()
