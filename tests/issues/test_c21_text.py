"""C21. Text was decoded as base64: `'YWJj'` arrived as `abc`, and `'a'` failed the bundle."""

from __future__ import annotations

import apache_beam as beam
import pytest

from beam_hedge import WriteToPubSubHedged
from tests.beam.collecting import Collector, create, finish, make_pipeline
from tests.beam.pipelines import RUNNERS, run_pipeline
from tests.issues.inputs import TEXTS
from tests.server.serving import TOPIC, UNHURRIED, serving


@pytest.mark.parametrize(
    ("runner", "arguments"),
    [
        ("fn_api", {}),
        ("bundle_based", {}),
        ("fn_api", {"id_label": "id"}),
        ("bundle_based", {"dead_letter": True}),
    ],
)
def test_text_is_published_as_utf8(runner: str, arguments: dict[str, object]) -> None:
    """What a pipeline writes as text, a subscriber reads as the same text, whatever the sink's options."""
    with serving() as server:
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, **arguments)  # type: ignore[arg-type]
        run_pipeline(TEXTS, transform, RUNNERS[runner])
        stored = [message.data for message in server.messages(TOPIC)]
    assert sorted(stored) == sorted(text.encode() for text in TEXTS)


def test_text_that_utf8_cannot_hold_is_a_dead_letter() -> None:
    """A lone surrogate is refused by name instead of being replaced without a word."""
    with serving() as server:
        # Other runners estimate the size of elements, and fail on such text before the sink sees it.
        pipeline, failed = make_pipeline("bundle_based"), Collector()
        texts = create(pipeline, [0xE9, 0xDCFF]) | beam.Map(lambda number: "b" + chr(number))
        failed.take((texts | WriteToPubSubHedged(TOPIC, UNHURRIED, dead_letter=True)).failed)
        finish(pipeline)
        assert [message.data for message in server.messages(TOPIC)] == ["b\u00e9".encode()]
    [letter] = failed.values
    assert letter.element == "b\udcff"
    assert "lone surrogate" in letter.reason
