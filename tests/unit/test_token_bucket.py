"""The token bucket: whole thousandths of a token, filled by successes only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.settings import HedgingSettings
from beam_hedge.token_bucket import TOKEN, TokenBucket, make_token_bucket
from tests.unit.watched_bucket import WatchedBucket


def test_it_starts_empty() -> None:
    """A publisher that has published nothing hedges nothing, as Google's clients."""
    bucket = TokenBucket(max_tokens=50, refill_ratio=0.1)
    assert bucket.milli_tokens == 0
    assert not bucket.try_acquire()
    assert bucket.milli_tokens == 0


def test_a_warm_start_holds_its_tokens() -> None:
    """A user can have hedges from the first batch on, as many as asked for."""
    bucket = TokenBucket(max_tokens=50, refill_ratio=0.1, initial_tokens=2)
    assert [bucket.try_acquire() for _ in range(3)] == [True, True, False]


def test_ten_refills_of_a_tenth_are_exactly_one_token() -> None:
    """One hedge for ten batches means the tenth batch, not the eleventh."""
    bucket = TokenBucket(max_tokens=50, refill_ratio=0.1)
    for _ in range(9):
        bucket.refill()
    assert not bucket.try_acquire()
    bucket.refill()
    assert bucket.milli_tokens == TOKEN
    assert bucket.try_acquire()
    assert bucket.milli_tokens == 0


def test_a_thousand_refills_of_the_smallest_ratio_are_one_token() -> None:
    """The smallest ratio adds up without loss."""
    bucket = TokenBucket(max_tokens=1, refill_ratio=0.001)
    for _ in range(999):
        bucket.refill()
    assert not bucket.try_acquire()
    bucket.refill()
    assert bucket.try_acquire()


@pytest.mark.parametrize(
    ("ratio", "milli_tokens"),
    [(0.0019, 2), (0.001, 1), (0.0014, 1), (0.0015, 2), (0.0025, 3), (0.0045, 5), (0.2, 200), (0.19949, 199)],
)
def test_a_refill_is_the_ratio_rounded_half_up_to_thousandths(ratio: float, milli_tokens: int) -> None:
    """A ratio between two thousandths is rounded as people round, not as binary fractions happen to fall."""
    bucket = TokenBucket(max_tokens=1, refill_ratio=ratio)
    bucket.refill()
    assert bucket.milli_tokens == milli_tokens


def test_it_never_holds_more_than_its_most() -> None:
    """However long all goes well, the next outage gets a bounded burst of hedges."""
    bucket = TokenBucket(max_tokens=2, refill_ratio=0.15)
    for _ in range(1000):
        bucket.refill()
    assert bucket.milli_tokens == 2 * TOKEN
    assert [bucket.try_acquire() for _ in range(3)] == [True, True, False]


def test_a_bucket_of_no_tokens_stays_empty() -> None:
    """A publisher without hedging never finds a token."""
    bucket = TokenBucket(max_tokens=0, refill_ratio=0.0)
    bucket.refill()
    assert not bucket.try_acquire()


def test_without_hedging_the_bucket_never_holds_a_token() -> None:
    """`settings=None` means no hedges, however much is published and whoever asks."""
    bucket = make_token_bucket(None)
    for _ in range(1000):
        bucket.refill()
        assert bucket.milli_tokens == 0
        assert not bucket.try_acquire()
    assert repr(bucket) == "<TokenBucket 0.000/0>"


def test_a_bucket_is_made_as_the_settings_say() -> None:
    """Each of the user's three numbers has its effect, and each bucket a balance of its own."""
    settings = HedgingSettings(max_tokens=3, refill_ratio=0.2, initial_tokens=2)
    bucket, other = make_token_bucket(settings), make_token_bucket(settings)
    assert bucket.milli_tokens == 2 * TOKEN
    bucket.refill()
    assert bucket.milli_tokens == 2200
    for _ in range(10):
        bucket.refill()
    assert bucket.milli_tokens == 3 * TOKEN
    assert other.milli_tokens == 2 * TOKEN


def test_its_repr_shows_what_is_left() -> None:
    """A user sees the balance in a log line."""
    bucket = TokenBucket(max_tokens=50, refill_ratio=0.1, initial_tokens=3)
    bucket.refill()
    assert repr(bucket) == "<TokenBucket 3.100/50>"


@given(
    max_tokens=st.integers(min_value=1, max_value=5),
    ratio=st.one_of(st.sampled_from((0.001, 0.0019, 0.1, 0.2)), st.floats(min_value=0.001, max_value=0.2)),
    data=st.data(),
    refills=st.lists(st.booleans(), max_size=300),
)
def test_the_bounds_hold_for_any_order_of_hedges_and_successes(
    max_tokens: int, ratio: float, data: st.DataObject, refills: list[bool]
) -> None:
    """Hedges never exceed what was published and put in at the start, and no burst exceeds max_tokens."""
    bucket = WatchedBucket(max_tokens, ratio, data.draw(st.integers(min_value=0, max_value=max_tokens)))
    for refill in refills:
        if refill:
            bucket.refill()
        else:
            bucket.try_acquire()
