"""Publish hedging for Google Cloud Pub/Sub: an Apache Beam sink, and the publisher it is built on."""

from beam_hedge._version import __version__
from beam_hedge.dead_letters import FailedMessage
from beam_hedge.errors import (
    BeamHedgeError,
    EngineDiedError,
    ForkedProcessError,
    InvalidMessageError,
    InvalidSettingError,
    PublisherClosedError,
    PublishError,
    WrongThreadError,
)
from beam_hedge.outcome import PublishOutcome
from beam_hedge.publisher import HedgingPublisher
from beam_hedge.settings import HedgingSettings, RetrySettings
from beam_hedge.transform import WriteToPubSubHedged
from beam_hedge.write_result import WriteResult

__all__ = [
    "BeamHedgeError",
    "EngineDiedError",
    "FailedMessage",
    "ForkedProcessError",
    "HedgingPublisher",
    "HedgingSettings",
    "InvalidMessageError",
    "InvalidSettingError",
    "PublishError",
    "PublishOutcome",
    "PublisherClosedError",
    "RetrySettings",
    "WriteResult",
    "WriteToPubSubHedged",
    "WrongThreadError",
    "__version__",
]
