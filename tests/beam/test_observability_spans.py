"""OpenTelemetry: a span for each publish, below the caller's, and its attempts as spans below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from beam_hedge import HedgingPublisher, PublishError, RetrySettings, WriteToPubSubHedged
from beam_hedge.testing import NEVER, Reply
from tests.beam.pipelines import RUNNERS, batches_of, make_fn, run_bundle, run_pipeline
from tests.server.serving import EAGER, PATIENCE, TOPIC, UNHURRIED, by_attempt, by_number, eventually, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import ReadableSpan


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[TracerProvider]:
    """Make a tracer provider the program's, as its user would; a program can do that only once."""
    made = TracerProvider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: made)
    yield made
    made.shutdown()


@pytest.fixture
def exporter(provider: TracerProvider) -> InMemorySpanExporter:
    """Gather the spans that have ended."""
    gathering = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(gathering))
    return gathering


def publishes(exporter: InMemorySpanExporter) -> list[ReadableSpan]:
    """Returns the spans of whole publishes."""
    return [span for span in exporter.get_finished_spans() if span.name == "out publish"]


def attempts(exporter: InMemorySpanExporter) -> list[ReadableSpan]:
    """Returns the spans of single attempts, in the order in which they were sent."""
    found = [span for span in exporter.get_finished_spans() if span.name in {"original", "hedge"}]
    return sorted(found, key=lambda span: span.start_time or 0)


def parent_of(span: ReadableSpan) -> int | None:
    """Returns the id of the span above."""
    return span.parent.span_id if span.parent is not None else None


def id_of(span: ReadableSpan) -> int:
    """Returns the span's id."""
    assert span.context is not None
    return int(span.context.span_id)


def facts(span: ReadableSpan) -> dict[str, object]:
    """Returns the span's attributes."""
    return dict(span.attributes or {})


def test_original_and_hedges_are_below_one_publish(exporter: InMemorySpanExporter) -> None:
    """A trace shows which attempt was slow, on which connection, and which one won."""
    with (
        serving(by_attempt(NEVER, None)),
        HedgingPublisher(TOPIC, EAGER, enable_open_telemetry_tracing=True) as publisher,
    ):
        outcome = publisher.publish([b"a", b"b"]).result(PATIENCE)
    [publish] = publishes(exporter)
    original, *hedges = attempts(exporter)
    assert (original.name, {span.name for span in hedges}) == ("original", {"hedge"})
    assert len(hedges) == outcome.hedges >= 1
    assert {parent_of(span) for span in (original, *hedges)} == {id_of(publish)}
    assert (publish.kind, original.kind, hedges[0].kind) == (
        SpanKind.PRODUCER,
        SpanKind.CLIENT,
        SpanKind.CLIENT,
    )
    assert [facts(span)["beam_hedge.hedge"] for span in (original, *hedges)] == list(range(outcome.attempts))
    assert facts(original)["beam_hedge.connection"] != facts(hedges[0])["beam_hedge.connection"]
    assert facts(publish) == {
        "messaging.system": "gcp_pubsub",
        "messaging.operation": "publish",
        "messaging.destination.name": "out",
        "gcp.project_id": "p-test",
        "messaging.batch.message_count": 2,
        "messaging.message.body.size": outcome.request_bytes,
        "beam_hedge.attempts": outcome.attempts,
        "beam_hedge.winner": outcome.winner,
    }
    assert publish.status.status_code is StatusCode.UNSET
    assert original.status.status_code is StatusCode.ERROR
    assert original.status.description == "CANCELLED"
    [winner] = [span for span in hedges if facts(span)["beam_hedge.hedge"] == outcome.winner]
    assert winner.status.status_code is StatusCode.UNSET


def test_the_parent_is_the_callers_span(provider: TracerProvider, exporter: InMemorySpanExporter) -> None:
    """A publish is part of the trace of what the caller was doing, though it is sent on another thread."""
    tracer = provider.get_tracer("caller")
    with (
        serving(),
        HedgingPublisher(TOPIC, UNHURRIED, enable_open_telemetry_tracing=True) as publisher,
    ):
        with tracer.start_as_current_span("first") as first:
            future = publisher.publish([b"x"])
        with tracer.start_as_current_span("second") as second:
            publisher.publish([b"x"]).result(PATIENCE)
        future.result(PATIENCE)
        publisher.publish([b"x"]).result(PATIENCE)
    spans = [first.get_span_context().span_id, second.get_span_context().span_id, None]
    found = sorted(publishes(exporter), key=lambda span: span.start_time or 0)
    assert [parent_of(span) for span in found] == spans
    assert found[0].context is not None
    assert found[0].context.trace_id == first.get_span_context().trace_id


def test_the_parent_of_a_bundles_publishes_is_the_bundles_span(
    provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    """In the sink, too, the parent is whatever span is current on the bundle's thread."""
    with serving():
        write_fn = make_fn(UNHURRIED, enable_open_telemetry_tracing=True, batch_settings=batches_of(1))
        write_fn.setup()
        with provider.get_tracer("runner").start_as_current_span("bundle") as bundle:
            run_bundle(write_fn, [b"1", b"2"])
        write_fn.teardown()
        eventually(lambda: len(publishes(exporter)) == 2)
    assert {parent_of(span) for span in publishes(exporter)} == {bundle.get_span_context().span_id}


@pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])
def test_a_pipeline_with_tracing_on_has_a_span_for_each_batch(
    runner: str, exporter: InMemorySpanExporter
) -> None:
    """The transform's setting is all that a pipeline author has to set."""
    with serving() as server:
        transform = WriteToPubSubHedged(
            TOPIC, UNHURRIED, batch_settings=batches_of(1), enable_open_telemetry_tracing=True
        )
        run_pipeline([b"1", b"2", b"3"], transform, RUNNERS[runner])
        # A future has its result a moment before its span has its end.
        eventually(lambda: len(publishes(exporter)) == 3)
        assert server.ledger().requests == 3
    assert len(attempts(exporter)) == 3


def test_without_the_setting_there_are_no_spans(exporter: InMemorySpanExporter) -> None:
    """Tracing costs nothing until somebody asks for it."""
    with serving():
        run_pipeline([b"1"], WriteToPubSubHedged(TOPIC, UNHURRIED))
    assert exporter.get_finished_spans() == ()


def test_a_retry_is_one_more_original(exporter: InMemorySpanExporter) -> None:
    """Each try is a span with the status that it was refused with."""
    retry = RetrySettings(initial_retry_delay=0.01)
    with (
        serving(by_number(Reply(status=grpc.StatusCode.UNAVAILABLE))),
        HedgingPublisher(
            TOPIC, UNHURRIED, retry_settings=retry, enable_open_telemetry_tracing=True
        ) as publisher,
    ):
        publisher.publish([b"x"]).result(PATIENCE)
    first, second = attempts(exporter)
    assert (first.name, second.name) == ("original", "original")
    assert (first.status.status_code, first.status.description) == (StatusCode.ERROR, "UNAVAILABLE")
    assert facts(first)["rpc.grpc.status_code"] == 14
    assert second.status.status_code is StatusCode.UNSET
    [publish] = publishes(exporter)
    assert publish.status.status_code is StatusCode.UNSET


def test_a_failed_publish_is_a_failed_span(exporter: InMemorySpanExporter) -> None:
    """A batch that could not be published shows in the trace with its status, and without its payload."""
    secret = b"payload-that-nobody-may-trace"
    refusal = Reply(status=grpc.StatusCode.PERMISSION_DENIED, details="not you")
    with (
        serving(refusal),
        HedgingPublisher(TOPIC, UNHURRIED, enable_open_telemetry_tracing=True) as publisher,
    ):
        assert isinstance(publisher.publish([secret]).exception(PATIENCE), PublishError)
    [publish] = publishes(exporter)
    assert (publish.status.status_code, publish.status.description) == (StatusCode.ERROR, "PERMISSION_DENIED")
    assert all(secret.decode() not in span.to_json() for span in exporter.get_finished_spans())


def test_a_cancelled_publish_ends_its_spans(exporter: InMemorySpanExporter) -> None:
    """A bundle that was given up leaves no span open."""
    with (
        serving(NEVER) as server,
        HedgingPublisher(TOPIC, UNHURRIED, enable_open_telemetry_tracing=True) as publisher,
    ):
        future = publisher.publish([b"x"])
        server.wait_for(lambda ledger: ledger.open == 1, timeout=PATIENCE)
        future.cancel()
        eventually(lambda: publishes(exporter) and attempts(exporter))
    [publish], [original] = publishes(exporter), attempts(exporter)
    assert (publish.status.description, original.status.description) == ("CANCELLED", "CANCELLED")
