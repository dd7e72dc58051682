"""Publish hedging for Google Cloud Pub/Sub: an Apache Beam sink, and the publisher it is built on."""

from beam_hedge._version import __version__
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
from beam_hedge.transform import WriteResult, WriteToPubSubHedged

__all__ = [
    "BeamHedgeError",
    "EngineDiedError",
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
