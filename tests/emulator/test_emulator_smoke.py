"""The emulator that the other tests in this folder rely on does what they rely on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from google.cloud.pubsub_v1 import PublisherClient

from tests.emulator.emulator import EmulatorError, running_emulator

if TYPE_CHECKING:
    from pathlib import Path

    from tests.emulator.emulator import Emulator


def test_published_messages_are_pulled(emulator_host: Emulator) -> None:
    """What a client sends through the environment's setting is what a subscription gets."""
    topic = emulator_host.create_topic()
    subscription = emulator_host.create_subscription(topic)
    with PublisherClient() as publisher:
        futures = [publisher.publish(topic, b"%d" % number, kind="smoke") for number in range(1500)]
        ids = {future.result(timeout=60) for future in futures}
    messages = emulator_host.pull_all(subscription, 1500)
    assert sorted(int(message.data) for message in messages) == list(range(1500))
    assert {message.message_id for message in messages} == ids
    assert {message.attributes["kind"] for message in messages} == {"smoke"}
    assert emulator_host.pull_all(subscription, 0) == []


def test_large_messages_are_pulled(emulator_host: Emulator) -> None:
    """Messages whose answer is larger than gRPC's usual 4 MiB can be checked too."""
    topic = emulator_host.create_topic()
    subscription = emulator_host.create_subscription(topic)
    payload = os.urandom(6_000_000)
    with PublisherClient() as publisher:
        publisher.publish(topic, payload).result(timeout=60)
    [message] = emulator_host.pull_all(subscription, 1)
    assert message.data == payload


def test_an_emulator_that_does_not_start_says_why(tmp_path: Path) -> None:
    """Whoever has a broken Java reads what Java printed, and does not wait a minute for it."""
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho no room for the heap\nexit 3\n")
    java.chmod(0o755)
    with (
        pytest.raises(EmulatorError, match=r"ended with status 3 .*\nno room for the heap"),
        running_emulator(str(java), tmp_path / "emulator.jar"),
    ):
        pass
