"""C06. One message that the service refuses took its whole batch with it, for ever.

The status was retried, or the bundle was, and the good messages around the bad one were never published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge import WriteToPubSubHedged
from beam_hedge.testing import Reply
from tests.beam.collecting import run_for_failed
from tests.beam.pipelines import batches_of, make_fn, run_bundle, run_pipeline
from tests.server.serving import TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.testing import RequestRecord

TEN = [b"message %d" % number for number in range(1, 11)]
SEVENTH = TEN[6]


def refusing(*culprits: bytes) -> Callable[[RequestRecord], Reply | None]:
    """Makes a script that refuses each request which holds one of the culprits."""

    def script(record: RequestRecord) -> Reply | None:
        if any(message.data in culprits for message in record.messages):
            return Reply(status=grpc.StatusCode.INVALID_ARGUMENT, details="no such schema")
        return None

    return script


def test_without_dead_letters_there_is_one_clear_error_after_one_request() -> None:
    """The status is neither retried nor hedged, and the error says how many messages it is about, and why."""
    with serving(refusing(SEVENTH)) as server:
        with pytest.raises(Exception, match="INVALID_ARGUMENT after 1 attempt") as caught:
            run_pipeline([b"".join(TEN), SEVENTH], WriteToPubSubHedged(TOPIC, UNHURRIED))
        assert server.ledger().requests == server.ledger().failed["INVALID_ARGUMENT"] == 1
        assert server.ledger().messages == 0
    assert "2 messages" in str(caught.value)
    assert "no such schema" in str(caught.value)


@pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
def test_the_seventh_of_ten_is_the_only_dead_letter(runner: str) -> None:
    """Nine are published once each, only the culprit comes out, and it takes at most 11 requests."""
    with serving(refusing(SEVENTH)) as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, dead_letter=True)
        _, failed = run_for_failed(TEN, transform, runner)
        stored = [message.data for message in server.messages(TOPIC)]
        assert server.ledger().requests <= 11
        assert server.ledger().hedges == 0
    assert sorted(stored) == sorted(set(TEN) - {SEVENTH})
    assert [(letter.element, letter.status) for letter in failed] == [(SEVENTH, "INVALID_ARGUMENT")]
    assert failed[0].reason == "no such schema"


@pytest.mark.parametrize("place", [0, 1, 499, 500, 737, 999])
def test_one_culprit_in_1000_takes_at_most_22_requests(place: int) -> None:
    """Wherever the culprit is in a batch of 1,000, finding it stays cheap and 999 are published."""
    elements = [b"%d" % number for number in range(1000)]
    with serving(refusing(elements[place])) as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=batches_of(1000), dead_letter=True)
        _, failed = run_for_failed(elements, transform)
        stored = [message.data for message in server.messages(TOPIC)]
        assert server.ledger().requests <= 22
    assert [letter.element for letter in failed] == [elements[place]]
    assert sorted(stored) == sorted(elements[:place] + elements[place + 1 :])


def test_each_batch_finds_its_own_culprits() -> None:
    """Bad messages in several batches are all found, and the batches without one are not touched."""
    elements = [b"%d" % number for number in range(100)]
    culprits = elements[3], elements[5], elements[47], elements[90]
    with serving(refusing(*culprits)) as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=batches_of(10), dead_letter=True)
        _, failed = run_for_failed(elements, transform)
        stored = [message.data for message in server.messages(TOPIC)]
    assert sorted(letter.element for letter in failed) == sorted(culprits)
    assert sorted(stored) == sorted(set(elements) - set(culprits))


def test_a_refused_bundle_leaves_the_sink_usable() -> None:
    """After the error the next bundle is published as if nothing had been."""
    with serving(refusing(SEVENTH)) as server:
        write_fn = make_fn(UNHURRIED)
        write_fn.setup()
        with pytest.raises(Exception, match="INVALID_ARGUMENT"):
            run_bundle(write_fn, TEN)
        run_bundle(write_fn, TEN[:6])
        write_fn.teardown()
        assert [message.data for message in server.messages(TOPIC)] == TEN[:6]
