"""Beam YAML: how a row becomes a message, and how a row that cannot be one comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import apache_beam as beam
import grpc
import pytest
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms import window
from apache_beam.yaml.yaml_io import write_to_pubsub

from beam_hedge.testing import Reply
from beam_hedge.yaml_io import WriteRowsToPubSubHedged
from tests.server.serving import TOPIC, serving

if TYPE_CHECKING:
    from beam_hedge.testing import LocalPubSub, RequestRecord

BOTH = pytest.mark.parametrize("runner", ["FnApiRunner", "BundleBasedDirectRunner"])


class Cup(NamedTuple):
    """A row inside a row."""

    size: int
    note: Optional[str]  # noqa: UP045 - Beam's schemas know Optional[X]


def contents(server: LocalPubSub) -> list[tuple[bytes, dict[str, str]]]:
    """Returns data and attributes of all messages, sorted by data."""
    return sorted((message.data, dict(message.attributes)) for message in server.messages(TOPIC))


def publish(rows: list[beam.Row], transform: beam.PTransform[Any, Any]) -> list[tuple[bytes, dict[str, str]]]:
    """Publishes rows to a new server and returns what it stored."""
    with serving() as server:
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            _ = pipeline | beam.Create(rows) | transform
        return contents(server)


@pytest.mark.parametrize(
    ("rows", "arguments"),
    [
        ([beam.Row(payload=b"\x00\xff"), beam.Row(payload=b"x")], {"format": "RAW"}),
        ([beam.Row(payload="tea, \u00e9")], {"format": "raw"}),
        ([beam.Row(payload=b"x", k="v", n="w")], {"format": "RAW", "attributes": ["n", "k"]}),
        ([beam.Row(payload=b"x", k="v")], {"format": "RAW", "attributes": "k"}),
        (
            [beam.Row(payload=b"x", more={"a": "1", "k": "lost"}, k="v")],
            {"format": "RAW", "attributes": ["k"], "attributes_map": "more"},
        ),
        (
            [beam.Row(text="\u00e9", number=3, ratio=0.5, flag=True, items=["a", "b"], map={"b": 1, "a": 2})],
            {"format": "JSON"},
        ),
        ([beam.Row(cup=Cup(3, None), cups=[Cup(4, "hot")], k="v")], {"format": "json", "attributes": ["k"]}),
    ],
    ids=["bytes", "text", "attributes", "one attribute", "attributes and map", "JSON", "JSON of rows in rows"],
)
def test_messages_are_those_of_beams_own_yaml_sink(rows: list[beam.Row], arguments: dict[str, Any]) -> None:
    """A YAML pipeline changes one name, and subscribers see the same payloads and attributes."""
    # Beam's takes the name in upper or lower case, and so do we.
    ours = publish(rows, WriteRowsToPubSubHedged(TOPIC, **arguments))
    assert ours == publish(rows, write_to_pubsub(topic=TOPIC, **arguments))
    assert len(ours) == len(rows)


def test_a_null_field_is_left_out_of_json() -> None:
    """A field without a value does not turn up as an empty one."""
    rows = [beam.Row(a="x", b="y"), beam.Row(a="x", b=None)]
    assert [data for data, _ in publish(rows, WriteRowsToPubSubHedged(TOPIC, "JSON"))] == [
        b'{"a": "x", "b": "y"}',
        b'{"a": "x"}',
    ]


def test_an_id_that_a_row_brings_is_kept() -> None:
    """Rows with ids of their own keep them, so that duplicates of the source can be removed as well."""
    rows = [beam.Row(item="tea", order_id="7")]
    transform = WriteRowsToPubSubHedged(TOPIC, "RAW", attributes=["order_id"], id_attribute="order_id")
    assert publish(rows, transform) == [(b"tea", {"order_id": "7"})]


class Order(NamedTuple):
    """What the next test publishes."""

    name: str
    price: float


def describe(row: Any, in_window: Any = beam.DoFn.WindowParam) -> tuple[str, str, str, float]:
    """Turns a row of the error output into its parts, with the start of its window."""
    return row.element.name, row.msg, row.stack, float(in_window.start)


@BOTH
@pytest.mark.parametrize("id_attribute", [None, "id"])
def test_failed_rows_come_out_as_they_came_in(runner: str, id_attribute: str | None) -> None:
    """Rows that have no form and rows that the service refuses come out whole, in their own windows."""

    def refuse(record: RequestRecord) -> Reply | None:
        bad = any(b"bad" in message.data for message in record.messages)
        return Reply(status=grpc.StatusCode.INVALID_ARGUMENT, details="not so") if bad else None

    orders = [Order("tea", 1.5), Order("bad", 2.0), Order("free", float("nan")), Order("coffee", 2.5)]
    with serving(refuse) as server:
        with beam.Pipeline(runner=runner) as pipeline:
            rows = pipeline | beam.Create(list(enumerate(orders)), reshuffle=False)
            at = beam.MapTuple(lambda minute, order: window.TimestampedValue(order, 60 * minute))
            outputs = (
                rows
                | at.with_output_types(Order)
                | beam.WindowInto(window.FixedWindows(60))
                | WriteRowsToPubSubHedged(
                    TOPIC, "JSON", id_attribute=id_attribute, error_handling={"output": "failed"}
                )
            )
            assert sorted(outputs) == ["failed", "good"]
            assert_that(
                outputs["failed"] | beam.Map(describe) | "Global" >> beam.WindowInto(window.GlobalWindows()),
                equal_to(
                    [
                        ("bad", "not so", "INVALID_ARGUMENT", 60.0),
                        (
                            "free",
                            "the row has no JSON form: Out of range float values are not JSON compliant",
                            "INVALID_ARGUMENT",
                            120.0,
                        ),
                    ]
                ),
            )
        assert [data for data, _ in contents(server)] == [
            b'{"name": "coffee", "price": 2.5}',
            b'{"name": "tea", "price": 1.5}',
        ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (beam.Row(name="free", price=float("nan")), "the row has no JSON form"),
        (beam.Row(name="n" * 10_000_000, price=1.0), "10000000 B are allowed"),
    ],
    ids=["no form", "over a limit"],
)
def test_without_an_error_output_a_failed_row_fails_the_pipeline(row: beam.Row, reason: str) -> None:
    """Nothing is dropped in silence: whoever asks for no error output gets an error."""
    with serving() as server:
        with pytest.raises(Exception, match=reason) as caught, beam.Pipeline(runner="FnApiRunner") as pipeline:
            _ = pipeline | beam.Create([row]) | WriteRowsToPubSubHedged(TOPIC, "JSON")
        assert server.ledger().requests == 0
    assert len(str(caught.value)) < 2_000
