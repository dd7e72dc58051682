"""Payloads and attribute values reach subscribers, and nobody else: no log, error, metric, span."""

from __future__ import annotations

import logging
import pickle
import traceback
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import grpc
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.transforms.display import DisplayData
from google.cloud.pubsub_v1.types import LimitExceededBehavior, PublishFlowControl
from google.oauth2.credentials import Credentials
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from beam_hedge import (
    HedgingPublisher,
    HedgingSettings,
    InvalidSettingError,
    RetrySettings,
    WriteToPubSubHedged,
)
from beam_hedge.publisher_config import make_config
from beam_hedge.testing import NEVER, Reply
from tests.beam.collecting import Collector
from tests.beam.pipelines import close_publishers, run_pipeline
from tests.server.serving import PATIENCE, TOPIC, by_attempt, serving
from tests.unit.configs import make

if TYPE_CHECKING:
    from collections.abc import Iterator

PAYLOAD = "payload-of-a-user"
VALUE = "attribute-of-a-user"
TOKEN = "token-of-a-user"  # noqa: S105 - it opens nothing
SECRETS = (PAYLOAD, VALUE, TOKEN)
MESSAGE = PubsubMessage(PAYLOAD.encode(), {"name": VALUE})

ELEMENTS = [MESSAGE, PubsubMessage(PAYLOAD.encode(), {"name": VALUE * 100})]
REFUSED = by_attempt(Reply(status=grpc.StatusCode.INVALID_ARGUMENT))

_HEDGING = HedgingSettings(hedge_delay=0.1, initial_tokens=3)
_RETRY = RetrySettings(initial_rpc_timeout=0.3, total_timeout=0.5, initial_retry_delay=0.02)
_FAILURES = {
    "refused": REFUSED,
    "not permitted": by_attempt(Reply(status=grpc.StatusCode.PERMISSION_DENIED)),
    "in vain": by_attempt(Reply(status=grpc.StatusCode.UNAVAILABLE)),
    "never answered": by_attempt(NEVER),
    "too few ids": by_attempt(Reply(ids=0)),
    "too large": by_attempt(
        Reply(status=grpc.StatusCode.RESOURCE_EXHAUSTED, details="message larger than max")
    ),
    "hedges fail": by_attempt(NEVER, Reply(status=grpc.StatusCode.INTERNAL)),
    "slow, but well": by_attempt(Reply(delay=0.45), NEVER),
}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Gather all spans."""
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def _told(error: BaseException | None) -> str:
    """All that a program can show of an error, and what it sends to another process."""
    if error is None:
        return ""
    shown = [str(error), repr(error), *traceback.format_exception(error), repr(vars(error))]
    return "\n".join(shown) + repr(pickle.dumps(error))


def _assert_silent(*texts: str) -> None:
    for text in texts:
        for secret in SECRETS:
            assert secret not in text


@pytest.mark.parametrize("failure", _FAILURES)
def test_a_batch_that_fails_tells_nothing_of_its_messages(
    failure: str, caplog: pytest.LogCaptureFixture, spans: InMemorySpanExporter
) -> None:
    """However publishing fails, what a user publishes is not in what the user's operators read."""
    caplog.set_level(logging.DEBUG)
    with (
        serving(_FAILURES[failure]) as server,
        HedgingPublisher(
            TOPIC,
            _HEDGING,
            retry_settings=_RETRY,
            credentials=Credentials(token=TOKEN),
            enable_open_telemetry_tracing=True,
        ) as publisher,
    ):
        future = publisher.publish([MESSAGE])
        error = future.exception(PATIENCE)
        shown = [repr(publisher), repr(future), str(publisher.connection_counts), repr(publisher.token_bucket)]
        if error is None:
            shown += [repr(future.result()), repr(pickle.dumps(future.result()))]
        assert server.requests[0].messages[0].attributes == {"name": VALUE}
    assert spans.get_finished_spans()
    _assert_silent(caplog.text, _told(error), *shown, *(span.to_json() for span in spans.get_finished_spans()))


def test_a_call_that_is_refused_tells_nothing_of_its_messages(caplog: pytest.LogCaptureFixture) -> None:
    """Full, closed, or asked for the impossible: the error tells of the publisher and of sizes only."""
    caplog.set_level(logging.DEBUG)
    full = PublishFlowControl(1, 100, LimitExceededBehavior.ERROR)
    calls: list[Any] = [
        lambda publisher: publisher.publish([MESSAGE]),
        lambda publisher: publisher.publish([MESSAGE] * 1001),
        lambda publisher: publisher.publish([PAYLOAD * 2_000_000]),
        lambda publisher: publisher.publish([PubsubMessage(PAYLOAD.encode(), {"name": VALUE * 100})]),
        lambda publisher: publisher.publish([PubsubMessage(PAYLOAD.encode(), {"name": VALUE + "\ud800"})]),
        lambda publisher: publisher.publish([PubsubMessage(PAYLOAD.encode(), {"name": VALUE}, VALUE)]),
        lambda publisher: publisher.publish(PAYLOAD),
    ]
    told = []
    with serving(by_attempt(NEVER)), HedgingPublisher(TOPIC, None, flow_control=full) as publisher:
        stuck = publisher.publish([MESSAGE])
        for call in calls:
            with pytest.raises(Exception, match=r".") as raised:
                call(publisher)
            told.append(_told(raised.value))
        stuck.cancel()
        publisher.close(timeout=0)
        with pytest.raises(RuntimeError) as closed:
            publisher.publish([MESSAGE])
    _assert_silent(caplog.text, _told(closed.value), *told)


def test_a_pipeline_that_fails_tells_nothing_of_its_elements(caplog: pytest.LogCaptureFixture) -> None:
    """Worker logs and the job's error hold no element."""
    caplog.set_level(logging.DEBUG, logger="beam_hedge")
    for element in ELEMENTS:
        with serving(REFUSED), pytest.raises(Exception, match=r"INVALID_ARGUMENT|attribute 'name'") as raised:
            run_pipeline([element], WriteToPubSubHedged(TOPIC, _HEDGING, with_attributes=True))
        close_publishers()
        _assert_silent(str(raised.value), *(record.getMessage() for record in caplog.records))


def test_a_dead_letter_tells_nothing_but_itself(caplog: pytest.LogCaptureFixture) -> None:
    """Its reason, the job's metrics and the log can be shown to those who may not see the element."""
    caplog.set_level(logging.DEBUG, logger="beam_hedge")
    failed = Collector()
    with serving(REFUSED):
        pipeline = beam.Pipeline(runner="FnApiRunner")
        sink = WriteToPubSubHedged(TOPIC, _HEDGING, with_attributes=True, dead_letter=True)
        failed.take((pipeline | beam.Create(ELEMENTS) | sink).failed)
        result = pipeline.run()
        result.wait_until_finish()
        close_publishers()
    assert len(failed.values) == len(ELEMENTS)
    reasons = [f"{each.status} {each.reason}" for each in failed.values]
    metrics = str(result.metrics().query())
    _assert_silent(metrics, *reasons, *(record.getMessage() for record in caplog.records))


def test_what_describes_a_sink_holds_no_credentials() -> None:
    """A job's page, a log of its arguments and an error about them show neither token nor API key."""
    credentials = Credentials(token=TOKEN)
    with_key: Any = {"api_endpoint": "localhost:1", "api_key": TOKEN}
    sinks = [
        WriteToPubSubHedged(TOPIC, credentials=credentials),
        WriteToPubSubHedged(TOPIC, client_options=with_key),
    ]
    configs = [make(credentials=credentials), make(client_options=with_key)]
    shown = [str(DisplayData.create_from(sink).items) + repr(sink) for sink in sinks]
    _assert_silent(*shown, *map(repr, configs))
    refused: list[dict[str, Any]] = [
        {"client_options": with_key, "credentials": credentials},
        {"client_options": {**with_key, "api_kee": TOKEN}},
        {"client_options": [TOKEN]},
        {"client_options": {1: TOKEN}},
        {"credentials": TOKEN},
        {"credentials": {"token": TOKEN}},
    ]
    usual = {"topic": TOPIC, "settings": None, "retry_settings": RetrySettings(), "connections": 1}
    usual |= {"flow_control": PublishFlowControl(), "tracing": False}
    for arguments in refused:
        with pytest.raises(InvalidSettingError) as raised:
            make_config(**{"client_options": None, "credentials": None, **usual, **arguments})
        _assert_silent(_told(raised.value))
