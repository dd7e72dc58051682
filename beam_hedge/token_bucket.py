"""The budget for hedges of one publisher."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beam_hedge.settings import HedgingSettings

TOKEN = 1_000


class TokenBucket:
    """Tokens that successes put in and hedges take out, counted in whole thousandths of a token.

    It starts empty unless told otherwise and is never refilled by time, so that in an outage it drains and
    hedging stops by itself. Whole numbers make ten refills of 0.1 exactly one token.

    The engine's thread is the only one that changes it; reading `milli_tokens` is safe on any thread.

    Args:
        max_tokens: Most tokens that it can hold.
        refill_ratio: Tokens that one refill adds, rounded half up to thousandths.
        initial_tokens: Tokens at the start.

    Example:
        >>> bucket = TokenBucket(max_tokens=50, refill_ratio=0.1)
        >>> bucket.try_acquire()
        False
        >>> for _ in range(10):
        ...     bucket.refill()
        >>> bucket.try_acquire()
        True
    """

    def __init__(self, max_tokens: int, refill_ratio: float, initial_tokens: int = 0) -> None:
        self._capacity = max_tokens * TOKEN
        # repr() of a float is what the user wrote; its binary value would round 0.0025 either way.
        exact = Decimal(repr(refill_ratio)) * TOKEN
        self._refill = int(exact.to_integral_value(ROUND_HALF_UP))
        self.milli_tokens = initial_tokens * TOKEN

    def try_acquire(self) -> bool:
        """Takes one token if there is a whole one."""
        if self.milli_tokens < TOKEN:
            return False
        self.milli_tokens -= TOKEN
        return True

    def refill(self) -> None:
        """Adds what one published batch is worth."""
        self.milli_tokens = min(self.milli_tokens + self._refill, self._capacity)

    def __repr__(self) -> str:
        return f"<TokenBucket {self.milli_tokens / TOKEN:.3f}/{self._capacity // TOKEN}>"


def make_token_bucket(settings: HedgingSettings | None) -> TokenBucket:
    """Returns a new bucket as the settings say; one that stays empty if there is no hedging."""
    if settings is None:
        return TokenBucket(max_tokens=0, refill_ratio=0.0)
    return TokenBucket(settings.max_tokens, settings.refill_ratio, settings.initial_tokens)
