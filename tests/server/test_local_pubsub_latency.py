"""Latency profiles: what is drawn, how it is written, and that it is kept."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from beam_hedge.testing import PROFILES, LatencyProfile
from tests.server.conftest import ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.testing import LocalPubSub
    from tests.server.conftest import RawClient

    Serve = Callable[..., tuple[LocalPubSub, RawClient]]

TAIL = LatencyProfile(((0.95, 0.005), (0.04, 0.3), (0.01, 4.0)))


def test_a_profile_is_written_as_a_name_or_as_its_parts() -> None:
    """Users can give a profile on a command line."""
    assert LatencyProfile.parse("tail") == TAIL == PROFILES["tail"]
    assert LatencyProfile.parse("0.95:0.005,0.04:0.3,0.01:4") == TAIL
    assert LatencyProfile.parse("1:0") == PROFILES["none"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tial", "expected one of none, fast, slow, tail"),
        ("", "expected one of none, fast, slow, tail"),
        ("0.5:0.1", "add up to 1, these to 0.5"),
        ("0.5:0.1,0.6:0.1", "add up to 1, these to 1.1"),
        ("1:-1", "0 or more, got -1"),
        ("1:inf", "finite number of seconds"),
        ("0:1,1:0", "above 0 and at most 1, got 0"),
        ("nan:1", "above 0 and at most 1, got nan"),
        ("1:2:3", "got '1:2:3'"),
    ],
)
def test_a_wrong_profile_is_refused(text: str, words: str) -> None:
    """Users are told what is wrong with a profile, and never run with another one."""
    with pytest.raises(ValueError, match=words):
        LatencyProfile.parse(text)


def test_a_profile_needs_parts() -> None:
    """Users cannot make a profile that draws nothing."""
    with pytest.raises(ValueError, match="at least one part"):
        LatencyProfile(())


def test_draws_follow_the_probabilities() -> None:
    """Users get the mixture that they asked for."""
    drawn = Counter(islice(TAIL.draws(seed=1), 100_000))
    assert set(drawn) == {0.005, 0.3, 4.0}
    # Five standard deviations of a binomial distribution.
    assert abs(drawn[0.3] - 4_000) < 5 * 62
    assert abs(drawn[4.0] - 1_000) < 5 * 32


def test_a_seed_repeats_a_run(serve: Serve) -> None:
    """Users can repeat a run: the n-th call draws the same latency, however calls overlap."""
    expected = list(islice(LatencyProfile.parse("0.5:0,0.5:0.001").draws(seed=7), 40))
    for _ in range(2):
        server, client = serve(profile="0.5:0,0.5:0.001", seed=7)
        for call in [client.publish(b"x") for _ in range(40)]:
            ids(call)
        assert list(server.latencies) == expected
        assert [record.latency for record in server.requests] == expected
    assert list(islice(LatencyProfile.parse("0.5:0,0.5:0.001").draws(seed=8), 40)) != expected


def test_an_answer_comes_no_earlier_than_its_latency(serve: Serve) -> None:
    """Users wait as long as the profile says, from arrival to answer."""
    server, client = serve(profile="0.5:0.02,0.5:0.04")
    for call in [client.publish(b"x") for _ in range(20)]:
        ids(call)
    assert {record.latency for record in server.requests} == {0.02, 0.04}
    for record in server.requests:
        assert record.ended is not None
        assert record.ended - record.arrival >= record.latency
