"""C19. Dead letters came out in the wrong window, and logs filled up with payloads and pages of error text.

A message of the first minute was counted in the last, and what was meant to stay inside was in the log.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage

from beam_hedge import WriteToPubSubHedged
from beam_hedge.testing import Reply
from tests.beam.collecting import Collector, create_at, finish, make_pipeline
from tests.beam.pipelines import RUNNERS, run_pipeline
from tests.server.serving import TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    from beam_hedge.testing import RequestRecord

BOTH = pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
MARK = "not-for-anyones-eyes"
PAYLOAD = MARK.encode() * 5000
# 5,000 bytes of two each, behind one: a cut at an even place would be in the middle of a character.
DETAILS = "x" + "\u00e9" * 2500
assert len(PAYLOAD) == 100_000


def refuse_the_marked(record: RequestRecord) -> Reply | None:
    """Refuses each request that holds the payload, with a long text."""
    if any(message.data == PAYLOAD for message in record.messages):
        return Reply(status=grpc.StatusCode.INVALID_ARGUMENT, details=DETAILS)
    return None


@BOTH
@pytest.mark.parametrize("refused_by", ["the service", "our checks"])
def test_dead_letters_keep_time_and_window(
    runner: str, refused_by: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Two bad elements, a minute apart, come out in their own windows; the log does not hold what they hold."""
    caplog.set_level(logging.INFO)
    bad: Any = PubsubMessage(PAYLOAD, {} if refused_by == "the service" else {"goog": MARK})
    timed = [(5, PubsubMessage(b"good", {})), (10, bad), (65, PubsubMessage(b"good, too", {})), (70, bad)]
    with serving(refuse_the_marked) as server:
        pipeline, failed = make_pipeline(runner), Collector()
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, with_attributes=True, dead_letter=True)
        failed.take((create_at(pipeline, timed) | transform).failed)
        finish(pipeline)
        assert sorted(message.data for message in server.messages(TOPIC)) == [b"good", b"good, too"]
    assert sorted((each.time, each.window) for each in failed.seen) == [(10, (0, 60)), (70, (60, 120))]
    assert [each.element for each in failed.values] == [bad, bad]
    for letter in failed.values:
        assert len(letter.reason.encode()) <= 1024
        assert MARK not in letter.reason
    assert MARK not in caplog.text
    ours = [record for record in caplog.records if record.name.startswith("beam_hedge")]
    assert sum(len(record.getMessage()) for record in ours) < 2000


def test_the_services_words_are_cut_between_characters() -> None:
    """As much of a long error text as fits is kept, and it is still text."""
    with serving(refuse_the_marked):
        pipeline, failed = make_pipeline(), Collector()
        elements = create_at(pipeline, [(5, b"good"), (10, PAYLOAD)])
        failed.take((elements | WriteToPubSubHedged(TOPIC, UNHURRIED, dead_letter=True)).failed)
        finish(pipeline)
    [letter] = failed.values
    assert letter.reason.endswith("...")
    assert DETAILS.startswith(letter.reason.removesuffix("..."))
    assert 1000 <= len(letter.reason.encode("utf-8", "strict")) <= 1024


@BOTH
def test_the_error_of_a_bundle_is_short_and_without_the_payload(runner: str) -> None:
    """Without dead letters, the exception that reaches the user is under 2 KB and holds no payload."""
    with serving(refuse_the_marked), pytest.raises(Exception, match="INVALID_ARGUMENT") as caught:
        run_pipeline([PAYLOAD, PAYLOAD], WriteToPubSubHedged(TOPIC, UNHURRIED), RUNNERS[runner])
    chain: list[BaseException] = []
    error: BaseException | None = caught.value
    while error is not None:
        chain.append(error)
        error = error.__cause__ or error.__context__
    for each in chain:
        text = str(each)
        assert MARK not in text
        # The runner appends its traceback, which is not ours to bound.
        assert len(text.partition("Traceback (most recent call last)")[0].encode()) < 2000
