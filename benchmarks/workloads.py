"""What servers do to requests in measurements of the tail."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from benchmarks.disturbances import Brownout

_PARTS = 2000


@dataclass(frozen=True)
class Workload:
    """A server's latencies.

    Attributes:
        text: What they are, for a reader.
        profile: What they are, as for `beam_hedge.testing.LatencyProfile.parse`.
        brownout: What every request takes at least in the middle of the run, in seconds; 0 for no brownout.
    """

    text: str
    profile: str
    brownout: float = 0.0

    def middle(self, warm_up: float, duration: float) -> Brownout:
        """Returns its brownout: the middle fifth of what is measured.

        Args:
            warm_up: Seconds before the measurement.
            duration: Seconds of the measurement.
        """
        return Brownout(warm_up + 0.4 * duration, 0.2 * duration if self.brownout else 0.0, self.brownout)


def lognormal(median: float, sigma: float, parts: int = _PARTS) -> str:
    """Returns a log-normal distribution as a profile: its quantiles, each as likely as the others.

    Args:
        median: Seconds.
        sigma: The standard deviation of the logarithm.
        parts: How many quantiles.
    """
    normal = statistics.NormalDist(math.log(median), sigma)
    seconds = [math.exp(normal.inv_cdf((number + 0.5) / parts)) for number in range(parts)]
    return ",".join(f"{1 / parts}:{each:.6f}" for each in seconds)


WORKLOADS = {
    "tail": Workload("95 % in 5 ms, 4 % in 300 ms, 1 % in 4 s", "tail"),
    "stall": Workload("99 % in 5 ms, 1 % in 1 s", "0.99:0.005,0.01:1"),
    "lognormal": Workload("log-normal, median 10 ms, 1 % above 163 ms", lognormal(0.01, 1.2)),
    "brownout": Workload(
        "99 % in 5 ms, 1 % in 300 ms; in the middle fifth of the run all in at least 400 ms",
        "0.99:0.005,0.01:0.3",
        0.4,
    ),
}
