"""Event times and windows in streaming: what a subscriber reads in an attribute, and where outputs come out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import apache_beam as beam
import grpc
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms.window import FixedWindows, TimestampedValue

from beam_hedge import WriteToPubSubHedged
from beam_hedge.testing import Reply
from tests.beam.collecting import Collector, finish, make_pipeline
from tests.beam.relaying import (
    contents,
    feed,
    relayed,
    relaying,
    streaming_server,
    wait_for_messages,
)
from tests.server.serving import TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    from beam_hedge.testing import LocalPubSub, RequestRecord

# The runner that takes a `TestStream`, and streams without end.
STREAMING = "bundle_based"


def refuse_the_bad(record: RequestRecord) -> Reply | None:
    """Refuses each request that holds a message which says that it is bad."""
    if any(message.data.startswith(b"bad") for message in record.messages):
        return Reply(status=grpc.StatusCode.INVALID_ARGUMENT)
    return None


def at(seconds: float, data: bytes) -> TimestampedValue[bytes]:
    """Makes an element with its event time."""
    return TimestampedValue(data, seconds)


def times(server: LocalPubSub) -> dict[bytes, str]:
    """Returns the time attribute of each message."""
    return {message.data: message.attributes["ts"] for message in server.messages(TOPIC)}


def test_the_attribute_holds_the_event_time_in_milliseconds() -> None:
    """A message says when it happened, not when it was published, whether it is early, late or on time."""
    stream = (
        TestStream()
        .add_elements([at(10, b"first"), at(12.3456, b"with a fraction")])
        .advance_watermark_to(100)
        .add_elements([at(15, b"late")])
        .add_elements([at(-1.5, b"before the epoch")])
        .advance_watermark_to_infinity()
    )
    with serving() as server:
        pipeline = make_pipeline(STREAMING)
        _ = pipeline | stream | WriteToPubSubHedged(TOPIC, UNHURRIED, timestamp_attribute="ts")
        finish(pipeline)
        assert times(server) == {
            b"first": "10000",
            b"with a fraction": "12345",
            b"late": "15000",
            b"before the epoch": "-1500",
        }


def test_a_windows_result_has_the_time_of_the_window() -> None:
    """What a window was aggregated to carries the end of that window."""
    stream = (
        TestStream()
        .add_elements([at(10, b"a"), at(20, b"a"), at(70, b"a")])
        .advance_watermark_to(60)
        .advance_watermark_to_infinity()
    )
    with serving() as server:
        pipeline = make_pipeline(STREAMING)
        counts = (
            pipeline
            | stream
            | beam.WindowInto(FixedWindows(60))
            | beam.combiners.Count.PerElement()
            | beam.MapTuple(lambda _, count: b"%d" % count).with_output_types(bytes)
        )
        _ = counts | WriteToPubSubHedged(TOPIC, UNHURRIED, timestamp_attribute="ts")
        finish(pipeline)
        assert times(server) == {b"2": "59999", b"1": "119999"}


def test_outputs_stay_in_the_windows_of_their_elements() -> None:
    """Outcomes and dead letters of a stream come out in the windows that their elements are in."""
    stream = (
        TestStream()
        .add_elements([at(10, b"good"), at(20, b""), at(30, b"bad")])
        .advance_watermark_to(60)
        .add_elements([at(70, b"good, too"), at(80, b"bad, too"), at(130, b"last")])
        .advance_watermark_to_infinity()
    )
    pipeline, failed, published = make_pipeline(STREAMING), Collector(), Collector()
    transform = WriteToPubSubHedged(TOPIC, UNHURRIED, dead_letter=True, with_outcomes=True)
    result = pipeline | stream | beam.WindowInto(FixedWindows(60)) | transform
    failed.take(result.failed)
    published.take(result.published)
    with serving(refuse_the_bad) as server:
        finish(pipeline)
        assert sorted(message.data for message in server.messages(TOPIC)) == [b"good", b"good, too", b"last"]
    assert sorted((each.value.element, each.time, each.window) for each in failed.seen) == [
        (b"", 20, (0, 60)),
        (b"bad", 30, (0, 60)),
        (b"bad, too", 80, (60, 120)),
    ]
    assert sorted((each.window, each.value.messages) for each in published.seen) == [
        ((0, 60), 1),
        ((60, 120), 1),
        ((120, 180), 1),
    ]
    assert all(each.window[0] <= each.time < each.window[1] for each in published.seen)


def test_an_event_time_survives_a_relay() -> None:
    """A pipeline that reads event times from one attribute and writes them to another keeps them."""
    messages = [
        PubsubMessage(b"%d" % number, {"then": str(1_700_000_000_000 + number)}) for number in range(15)
    ]
    with streaming_server() as server:
        feed(messages)
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, with_attributes=True, timestamp_attribute="ts")
        with relaying(transform, with_attributes=True, timestamp_attribute="then"):
            wait_for_messages(server, 15)
        stored = server.messages(TOPIC)
    assert len(stored) == 15
    assert all(message.attributes["ts"] == message.attributes["then"] for message in stored)


def test_an_event_time_that_a_message_brings_is_replaced() -> None:
    """A relay that sets event times anew overwrites the attribute instead of adding to it."""
    before = time.time_ns() // 1_000_000
    with streaming_server() as server:
        feed([PubsubMessage(b"x", {"ts": "1"})])
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, with_attributes=True, timestamp_attribute="ts")
        # Without an attribute to read, the source takes the time at which the message was published to it.
        with relaying(transform, with_attributes=True):
            wait_for_messages(server, 1)
        [message] = server.messages(TOPIC)
    assert before - 1 <= int(message.attributes["ts"]) <= time.time_ns() // 1_000_000


def test_windowed_streams_pass() -> None:
    """Windows between source and sink, as most streaming pipelines have them, change no message."""
    messages = [PubsubMessage(b"%d" % number, {"n": str(number)}) for number in range(25)]
    with streaming_server() as server:
        feed(messages)
        transform = WriteToPubSubHedged(TOPIC, UNHURRIED, with_attributes=True, with_outcomes=True)
        with relaying(transform, beam.WindowInto(FixedWindows(1)), with_attributes=True):
            wait_for_messages(server, 25)
        assert relayed(server) == contents(messages)
