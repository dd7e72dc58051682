"""Latency profiles: how long the server takes to answer, as a seeded mixture."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class LatencyProfile:
    """A mixture of latencies: each request takes one of them, with the probability that stands beside it.

    Args:
        parts: Pairs of a probability, above 0, and a latency in seconds, 0 or more. The probabilities add up
            to 1.

    Raises:
        ValueError: If a number is out of range or the probabilities do not add up to 1.

    Example:
        >>> LatencyProfile(((0.95, 0.005), (0.04, 0.3), (0.01, 4.0))) == LatencyProfile.parse("tail")
        True
    """

    parts: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("a latency profile needs at least one part")
        for probability, seconds in self.parts:
            if not 0 < probability <= 1:
                raise ValueError(f"a probability is above 0 and at most 1, got {probability:g}")
            if not (math.isfinite(seconds) and seconds >= 0):
                raise ValueError(f"a latency is a finite number of seconds, 0 or more, got {seconds:g}")
        total = math.fsum(probability for probability, _ in self.parts)
        if not math.isclose(total, 1, abs_tol=1e-6):
            raise ValueError(f"the probabilities of a latency profile add up to 1, these to {total:g}")

    @classmethod
    def parse(cls, text: str) -> LatencyProfile:
        """Reads a profile as written on a command line.

        Args:
            text: A name out of `PROFILES`, or parts such as "0.95:0.005,0.04:0.3,0.01:4": probability, colon,
                seconds.

        Returns:
            The profile.

        Raises:
            ValueError: If the text is neither, or the profile is not valid.
        """
        if text in PROFILES:
            return PROFILES[text]
        try:
            parts = tuple(
                (float(probability), float(seconds))
                for probability, seconds in (part.split(":") for part in text.split(","))
            )
        except ValueError:
            raise ValueError(
                f"expected one of {', '.join(PROFILES)}, or parts such as 0.95:0.005,0.05:0.3, got {text!r}"
            ) from None
        return cls(parts)

    def draws(self, seed: int = 0) -> Iterator[float]:
        """Yields latencies in seconds without end, the same ones for the same seed."""
        rng = random.Random(seed)
        seconds = [part_seconds for _, part_seconds in self.parts]
        limits = list(accumulate(probability for probability, _ in self.parts))
        while True:
            yield rng.choices(seconds, cum_weights=limits)[0]


PROFILES = MappingProxyType(
    {
        "none": LatencyProfile(((1.0, 0.0),)),
        "fast": LatencyProfile(((1.0, 0.005),)),
        "slow": LatencyProfile(((1.0, 0.3),)),
        "tail": LatencyProfile(((0.95, 0.005), (0.04, 0.3), (0.01, 4.0))),
    }
)
"""The named profiles: "none", "fast" (5 ms), "slow" (300 ms), "tail" (95 % 5 ms, 4 % 300 ms, 1 % 4 s)."""
