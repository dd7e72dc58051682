"""What is checked when the transform is built: everything that can be, with nothing contacted."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, NoReturn

import apache_beam as beam
import google.auth
import grpc
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.display import DisplayData
from google.cloud.pubsub_v1.types import LimitExceededBehavior, PublishFlowControl

from beam_hedge import HedgingSettings, InvalidSettingError, PublishOutcome, WriteToPubSubHedged
from tests.server.serving import TOPIC

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("settings", "reason"), [(HedgingSettings(), "hedging is on"), (None, "same time")])
def test_ordering_is_refused_with_the_reason(settings: HedgingSettings | None, reason: str) -> None:
    """Copies of one batch can be processed out of order, so ordered publishing is refused and told why."""
    with pytest.raises(InvalidSettingError, match=r"beam\.io\.WriteToPubSub") as caught:
        WriteToPubSubHedged(TOPIC, settings, publish_with_ordering_key=True)
    assert reason in str(caught.value)


def test_settings_are_keyword_only_after_the_second() -> None:
    """A misplaced positional argument is an error, not another setting."""
    with pytest.raises(TypeError):
        WriteToPubSubHedged(TOPIC, HedgingSettings(), True)  # type: ignore[call-arg]


@pytest.fixture
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make every contact with the outside an error."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("something was contacted")

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    for owner, name in (
        (socket.socket, "connect"),
        (google.auth, "default"),
        (grpc.aio, "insecure_channel"),
        (grpc.aio, "secure_channel"),
        (grpc, "insecure_channel"),
        (grpc, "secure_channel"),
    ):
        monkeypatch.setattr(owner, name, refuse)


@pytest.mark.usefixtures("isolated")
@pytest.mark.parametrize("settings", [HedgingSettings(), None])
def test_building_and_pickling_contacts_nothing(settings: HedgingSettings | None) -> None:
    """A pipeline can be built, and a template staged, on a machine without credentials or network."""
    pipeline = beam.Pipeline(options=PipelineOptions([]))
    transform = WriteToPubSubHedged(TOPIC, settings, client_options={"api_endpoint": "nowhere:443"})
    _ = pipeline | beam.Create([b"x"]) | transform
    DisplayData.create_from(transform)
    pipeline.to_runner_api()


def test_display_data_shows_every_setting() -> None:
    """The runner's console shows what the sink was set to, and no credentials."""
    transform = WriteToPubSubHedged(
        TOPIC, HedgingSettings(0.5, 100, 0.05), connections=3, client_options={"api_key": "not-a-secret"}
    )
    shown = {item.key: item.value for item in DisplayData.create_from(transform).items}
    expected = {
        "topic": TOPIC,
        "hedging": True,
        "hedge_delay": 0.5,
        "max_tokens": 100,
        "refill_ratio": 0.05,
        "connections": 3,
        "retry_initial_rpc_timeout": 60.0,
        "batch_max_messages": 100,
        "flow_control_message_limit": 10_000,
        "with_attributes": False,
    }
    assert expected.items() <= shown.items()
    assert "not-a-secret" not in str(shown)
    plain = DisplayData.create_from(WriteToPubSubHedged(TOPIC, None))
    assert {item.key: item.value for item in plain.items}["hedging"] is False


def test_elements_of_the_wrong_type_are_refused_when_the_pipeline_is_built() -> None:
    """A collection of numbers is refused at construction, not by a worker hours later."""
    pipeline = beam.Pipeline(options=PipelineOptions([]))
    numbers = pipeline | beam.Create([1, 2])
    with pytest.raises(beam.typehints.TypeCheckError):
        _ = numbers | "data" >> WriteToPubSubHedged(TOPIC)
    with pytest.raises(beam.typehints.TypeCheckError):
        _ = numbers | "messages" >> WriteToPubSubHedged(TOPIC, with_attributes=True)


@pytest.mark.parametrize(
    ("elements", "with_attributes"),
    [([b"x"], False), (["x"], False), ([b"x", "y"], False), ([PubsubMessage(b"x", {})], True)],
    ids=["bytes", "str", "both", "messages"],
)
def test_elements_of_the_right_type_are_accepted(elements: list[Any], with_attributes: bool) -> None:
    """Bytes, text, a mixture of both, and messages pass Beam's type check."""
    pipeline = beam.Pipeline(options=PipelineOptions([]))
    created = pipeline | beam.Create(elements)
    result = created | WriteToPubSubHedged(TOPIC, with_attributes=with_attributes, with_outcomes=True)
    assert result.published.element_type is PublishOutcome


def test_the_default_batch_and_flow_control_are_those_that_are_documented() -> None:
    """Defaults are the client library's for batches, and blocking for flow control."""
    config = WriteToPubSubHedged(TOPIC)._config
    assert config.flow_control == PublishFlowControl(10_000, 100_000_000, LimitExceededBehavior.BLOCK)
    assert config.settings == HedgingSettings(1.0, 50, 0.1, 0)
    assert config.connections == 2
