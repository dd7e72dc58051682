"""Spans of batches that share a request: one for each, whatever becomes of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import grpc
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from beam_hedge import HedgingSettings
from beam_hedge.tracing import PublishTrace
from tests.unit.dispatching import dispatching

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import ReadableSpan

    from tests.unit.dispatching import Dispatching

HEDGED = HedgingSettings(hedge_delay=1, initial_tokens=9)


class Spans:
    """Counts spans that began, and keeps those that have ended."""

    def __init__(self, provider: TracerProvider) -> None:
        self._exporter = InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def publishes(self) -> list[ReadableSpan]:
        """Returns the spans of batches that have ended, in the order of their beginning."""
        found = [span for span in self._exporter.get_finished_spans() if span.name == "out publish"]
        return sorted(found, key=lambda span: span.start_time or 0)

    def names(self) -> Counter[str]:
        """Returns how many of each name have ended."""
        return Counter(span.name for span in self._exporter.get_finished_spans())

    def clear(self) -> None:
        """Forgets all."""
        self._exporter.clear()


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    """Make a tracer provider the program's, and gather what it is told."""
    provider = TracerProvider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield Spans(provider)
    provider.shutdown()


def warm(bench: Dispatching, spans: Spans) -> None:
    """Has three threads wait for a batch each, and forgets their spans."""
    bench.warm(1, 2, 3)
    spans.clear()


def test_each_batch_of_a_request_has_a_span(spans: Spans) -> None:
    """A trace shows each caller's publish, and the attempts that they shared once."""
    with dispatching(HEDGED, tracing=True) as bench:
        warm(bench, spans)
        for thread in (1, 2, 3):
            bench.accept(thread)
        bench.run(1.5)
        bench.answer(bench.calls[1])
    assert spans.names() == {"out publish": 3, "original": 1, "hedge": 1}
    assert [span.status.status_code for span in spans.publishes()] == [StatusCode.UNSET] * 3
    assert [(span.attributes or {})["beam_hedge.attempts"] for span in spans.publishes()] == [2, 1, 1]


def test_each_batch_of_a_failed_request_has_a_failed_span(spans: Spans) -> None:
    """No caller's trace says that all went well when the topic is missing."""
    with dispatching(HEDGED, tracing=True) as bench:
        warm(bench, spans)
        for thread in (1, 2, 3):
            bench.accept(thread)
        bench.run()
        bench.calls[0].refuse(grpc.StatusCode.NOT_FOUND)
        bench.run()
    assert [span.status.description for span in spans.publishes()] == ["NOT_FOUND"] * 3


def test_a_split_leaves_one_span_for_each_batch(spans: Spans) -> None:
    """A batch that was sent twice is one publish, whose span ends with its outcome."""
    with dispatching(HEDGED, tracing=True) as bench:
        warm(bench, spans)
        for thread in (1, 2, 3):
            bench.accept(thread)
        bench.run()
        bench.calls[0].refuse(grpc.StatusCode.INVALID_ARGUMENT)
        bench.run()
        assert not spans.publishes()
        bench.answer(bench.calls[1])
        bench.calls[2].refuse(grpc.StatusCode.INVALID_ARGUMENT)
        bench.answer(bench.calls[3])
    assert spans.names() == {"out publish": 3, "original": 4}
    found = [span.status.description for span in spans.publishes()]
    assert found == [None, "INVALID_ARGUMENT", None]


def test_spans_of_those_who_cancel_end_with_their_interest(spans: Spans) -> None:
    """A bundle that was given up has its span ended, before and after its request was sent."""
    with dispatching(HEDGED, tracing=True) as bench:
        warm(bench, spans)
        futures = [bench.accept(thread) for thread in (1, 2, 3)]
        futures[0].cancel()
        bench.run()
        assert [span.status.description for span in spans.publishes()] == ["CANCELLED"]
        futures[1].cancel()
        bench.run()
        assert [span.status.description for span in spans.publishes()] == ["CANCELLED"] * 2
        bench.answer(bench.calls[0])
    assert [span.status.description for span in spans.publishes()] == ["CANCELLED", "CANCELLED", None]


@pytest.mark.usefixtures("spans")
def test_a_span_processor_that_raises_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """A fault in a program's tracing costs a line in the log, and no caller its outcome."""
    with dispatching(HEDGED, tracing=True) as bench:
        bench.warm(1, 2)
        futures = [bench.accept(1), bench.accept(2)]
        bench.run()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PublishTrace, "end", _raise)
            bench.answer(bench.calls[0])
        assert [future.result(0).message_ids for future in futures] == [("1",), ("2",)]
    assert [record.getMessage() for record in caplog.records] == ["ending the span of a batch failed"] * 2


def _raise(*_result: object) -> None:
    raise RuntimeError("a fault of the program's")
