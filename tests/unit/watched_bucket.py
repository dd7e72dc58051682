"""A token bucket that checks the spec's bounds at every step, against a ledger of its own."""

from __future__ import annotations

from beam_hedge.token_bucket import TOKEN, TokenBucket


class WatchedBucket(TokenBucket):
    """The real bucket, with an auditor.

    Attributes:
        taken: Tokens that hedges took.
        refills: Batches that were published.
        refill_milli: What one of them adds, in thousandths.
    """

    def __init__(self, max_tokens: int, refill_ratio: float, initial_tokens: int = 0) -> None:
        super().__init__(max_tokens, refill_ratio, initial_tokens)
        self.taken = 0
        self.refills = 0
        # Rounded half up with whole numbers only: independent of the library's way.
        self.refill_milli = (round(refill_ratio * 10**9) * 2 // 10**6 + 1) // 2
        self._most = max_tokens * TOKEN
        self._initial = initial_tokens * TOKEN
        self._ledger = self._initial
        # The heaviest interval that ends now: its hedges less its refills, in thousandths.
        self._burst = 0

    def try_acquire(self) -> bool:
        """Takes a token, and checks that this was allowed."""
        before = self._ledger
        acquired = super().try_acquire()
        assert acquired == (before >= TOKEN)
        if acquired:
            self.taken += 1
            self._ledger -= TOKEN
            self._burst += TOKEN
        self._check()
        return acquired

    def refill(self) -> None:
        """Adds a refill, and checks what it came to."""
        super().refill()
        self.refills += 1
        self._ledger = min(self._ledger + self.refill_milli, self._most)
        self._burst = max(self._burst - self.refill_milli, 0)
        self._check()

    def _check(self) -> None:
        assert self.milli_tokens == self._ledger
        assert 0 <= self.milli_tokens <= self._most
        assert self.taken * TOKEN <= self._initial + self.refills * self.refill_milli
        assert self._burst <= self._most
