"""What reaches the log while publishing goes well, badly, and with logging at its loudest."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING

import grpc
import pytest

from beam_hedge import HedgingPublisher, PublishError, RetrySettings
from beam_hedge.testing import NEVER, Reply
from tests.server.serving import EAGER, PATIENCE, TOPIC, UNHURRIED, by_attempt, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = b"payload-that-nobody-may-log"
LOUD = (
    "",
    "google",
    "google.api_core",
    "google.pubsub_v1",
    "google.cloud",
    "grpc",
    "grpc._cython.cygrpc",
    "asyncio",
)


@pytest.fixture
def loud(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.LogCaptureFixture]:
    """Set every logger that has a part in publishing to DEBUG."""
    monkeypatch.setenv("GOOGLE_SDK_PYTHON_LOGGING_SCOPE", "google")
    with pytest.MonkeyPatch.context() as patched:
        for name in LOUD:
            caplog.set_level(logging.DEBUG, logger=name)
            patched.setattr(logging.getLogger(name), "propagate", True)
        yield caplog


def test_logging_at_debug_neither_stalls_nor_leaks_payloads(loud: pytest.LogCaptureFixture) -> None:
    """The generated client's logging waits for each answer and writes it out; this sink's path does neither."""
    with (
        serving(lambda record: NEVER if record.messages[0].data == SECRET * 2 else None) as server,
        HedgingPublisher(TOPIC, UNHURRIED) as publisher,
    ):
        stuck = publisher.publish([SECRET * 2])
        # If logging waited for answers, the first one would hold back all others.
        for _ in range(20):
            publisher.publish([SECRET]).result(PATIENCE)
        assert not stuck.done()
        stuck.cancel()
        server.delete_topic(TOPIC)
        assert isinstance(publisher.publish([SECRET]).exception(PATIENCE), PublishError)
    assert SECRET.decode() not in loud.text


def noise(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Returns what no user should have to read: errors, and what asyncio and gRPC complain of."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.ERROR or record.name.partition(".")[0] in {"asyncio", "grpc"}
    ]


@pytest.mark.parametrize("hedged", ["wins", "fails", "loses", "nobody"])
def test_no_attempt_ends_unnoticed(caplog: pytest.LogCaptureFixture, hedged: str) -> None:
    """Cancelled and failed attempts are all looked after: no 'exception was never retrieved' in the log."""
    refused = Reply(status=grpc.StatusCode.INVALID_ARGUMENT, delay=0.4)
    script = {
        "wins": by_attempt(NEVER, None),
        "fails": by_attempt(Reply(delay=0.4), Reply(status=grpc.StatusCode.ABORTED)),
        "loses": by_attempt(Reply(delay=0.4), NEVER),
        "nobody": by_attempt(refused, NEVER),
    }[hedged]
    with serving(script), HedgingPublisher(TOPIC, EAGER) as publisher:
        for future in [publisher.publish([b"%d" % number]) for number in range(5)]:
            future.exception(PATIENCE)
    gc.collect()
    assert noise(caplog) == []


def test_time_outs_and_retries_are_no_noise(caplog: pytest.LogCaptureFixture) -> None:
    """An outage fills counters and errors; the log gets a line now and then, not one a batch."""
    retry = RetrySettings(initial_rpc_timeout=0.3, total_timeout=0.7, initial_retry_delay=0.01)
    with serving(NEVER), HedgingPublisher(TOPIC, EAGER, retry_settings=retry) as publisher:
        for future in [publisher.publish([b"%d" % number]) for number in range(50)]:
            assert isinstance(future.exception(PATIENCE), PublishError)
    gc.collect()
    assert noise(caplog) == []
    assert len(caplog.records) <= 2


def test_an_abandoned_future_is_no_noise(caplog: pytest.LogCaptureFixture) -> None:
    """A caller who forgets a future that failed is not told of it by the log."""
    with serving() as server, HedgingPublisher(TOPIC) as publisher:
        server.delete_topic(TOPIC)
        for _ in range(5):
            publisher.publish([b"x"])
    gc.collect()
    assert noise(caplog) == []
