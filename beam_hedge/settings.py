"""The settings of the sink: frozen values, checked when they are built, with their defaults and limits.

Batching and flow control use google-cloud-pubsub's own types; only their values are checked here.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from google.cloud.pubsub_v1.types import BatchSettings, LimitExceededBehavior, PublishFlowControl

from beam_hedge.errors import InvalidSettingError

MAX_REQUEST_BYTES = 10_000_000
MAX_REQUEST_MESSAGES = 1_000
MAX_CONNECTIONS = 8
DEFAULT_CONNECTIONS = 2
DEFAULT_BATCH_SETTINGS = BatchSettings()
DEFAULT_FLOW_CONTROL = PublishFlowControl(
    message_limit=10_000, byte_limit=100_000_000, limit_exceeded_behavior=LimitExceededBehavior.BLOCK
)

_DAY = 86_400.0


@dataclass(frozen=True)
class HedgingSettings:
    """When a batch is sent a second time, and how many such hedges are allowed.

    Args:
        hedge_delay: How long to wait for the previous attempt before one more is sent. Seconds, or a
            `datetime.timedelta`; 0.1 to 10. Default 1.
        max_tokens: Most tokens that the bucket can hold; a hedge costs one. Whole number, 1 to 250. Default
            50.
        refill_ratio: Tokens added for each batch that is published; 0.001 to 0.2. Default 0.1: in the long
            run at most one hedge for ten batches.
        initial_tokens: Tokens in the bucket at the start. Whole number, 0 to max_tokens. Default 0, as in
            Google's clients: hedging begins once batches have been published.

    Raises:
        InvalidSettingError: A value is outside its limits. Nothing is clamped.

    Example:
        >>> HedgingSettings(hedge_delay=0.5, max_tokens=100).hedge_delay
        0.5

    See https://cloud.google.com/pubsub/docs/publisher for Google's guide to publishing.
    """

    hedge_delay: float | dt.timedelta = 1.0
    max_tokens: int = 50
    refill_ratio: float = 0.1
    initial_tokens: int = 0

    def __post_init__(self) -> None:
        _set(self, "hedge_delay", _seconds("hedge_delay", self.hedge_delay, 0.1, 10.0))
        _set(self, "max_tokens", _whole("max_tokens", self.max_tokens, 1, 250))
        _set(self, "refill_ratio", _number("refill_ratio", self.refill_ratio, 0.001, 0.2))
        _set(self, "initial_tokens", _whole("initial_tokens", self.initial_tokens, 0, self.max_tokens))


@dataclass(frozen=True)
class RetrySettings:
    """How the original attempt of a batch is retried. The names are those of Google's gax libraries.

    Args:
        initial_rpc_timeout: Deadline of each try, in seconds or as a `datetime.timedelta`. Default 60.
        total_timeout: Time for all tries and waits of a batch together, from its first send. Default 600.
        initial_retry_delay: Longest first wait between two tries; each wait is drawn from the upper half of
            its range. Default 0.1.
        retry_delay_multiplier: What the wait grows by after each try; 1 to 100. Default 4.
        max_retry_delay: Longest wait between two tries; at least initial_retry_delay. Default 60.

    All durations are at least 1 ms and at most one day.

    Raises:
        InvalidSettingError: A value is outside its limits.

    Example:
        >>> import datetime
        >>> RetrySettings(total_timeout=datetime.timedelta(minutes=2)).total_timeout
        120.0
    """

    initial_rpc_timeout: float | dt.timedelta = 60.0
    total_timeout: float | dt.timedelta = 600.0
    initial_retry_delay: float | dt.timedelta = 0.1
    retry_delay_multiplier: float = 4.0
    max_retry_delay: float | dt.timedelta = 60.0

    def __post_init__(self) -> None:
        for field in ("initial_rpc_timeout", "total_timeout", "initial_retry_delay", "max_retry_delay"):
            _set(self, field, _seconds(field, getattr(self, field), 0.001, _DAY))
        _set(
            self,
            "retry_delay_multiplier",
            _number("retry_delay_multiplier", self.retry_delay_multiplier, 1.0, 100.0),
        )
        if seconds(self.max_retry_delay) < seconds(self.initial_retry_delay):
            raise InvalidSettingError(
                "max_retry_delay",
                self.max_retry_delay,
                f"at least initial_retry_delay ({self.initial_retry_delay} s)",
            )


def seconds(duration: float | dt.timedelta) -> float:
    """Returns a duration as float seconds."""
    return duration.total_seconds() if isinstance(duration, dt.timedelta) else duration


def check_delay_fits(settings: HedgingSettings | None, retry: RetrySettings) -> None:
    """Refuses a hedge delay that a batch could not live to see.

    Raises:
        InvalidSettingError: The hedge delay is not strictly shorter than both timeouts of the retry settings.
    """
    if settings is None:
        return
    for field in ("initial_rpc_timeout", "total_timeout"):
        timeout = getattr(retry, field)
        if seconds(settings.hedge_delay) >= timeout:
            raise InvalidSettingError(
                "hedge_delay",
                settings.hedge_delay,
                f"strictly shorter than the retry settings' {field} ({timeout} s)",
            )


def check_batch_settings(batch_settings: BatchSettings) -> BatchSettings:
    """Returns google-cloud-pubsub's batch settings if Pub/Sub can take such batches.

    Raises:
        InvalidSettingError: `max_messages` is not 1 to 1,000, `max_bytes` not 1 to 10,000,000, or
            `max_latency` not 0 s to one day.
    """
    _instance("batch_settings", batch_settings, BatchSettings)
    _whole("batch_settings.max_messages", batch_settings.max_messages, 1, MAX_REQUEST_MESSAGES)
    _whole("batch_settings.max_bytes", batch_settings.max_bytes, 1, MAX_REQUEST_BYTES)
    _number("batch_settings.max_latency", batch_settings.max_latency, 0.0, _DAY)
    return batch_settings


def check_flow_control(flow_control: PublishFlowControl) -> PublishFlowControl:
    """Returns google-cloud-pubsub's flow control settings if they are usable.

    Raises:
        InvalidSettingError: A limit is not a whole number of at least 1, or the behaviour is not a
            `LimitExceededBehavior`.
    """
    _instance("flow_control", flow_control, PublishFlowControl)
    _whole("flow_control.message_limit", flow_control.message_limit, 1, 2**53)
    _whole("flow_control.byte_limit", flow_control.byte_limit, 1, 2**53)
    _instance(
        "flow_control.limit_exceeded_behavior", flow_control.limit_exceeded_behavior, LimitExceededBehavior
    )
    return flow_control


def check_hedging_settings(settings: HedgingSettings | None) -> HedgingSettings | None:
    """Returns the settings; `None` means no hedging.

    Raises:
        InvalidSettingError: They are something else.
    """
    if settings is not None:
        _instance("settings", settings, HedgingSettings)
    return settings


def check_retry_settings(retry_settings: RetrySettings) -> RetrySettings:
    """Returns the settings.

    Raises:
        InvalidSettingError: They are something else.
    """
    _instance("retry_settings", retry_settings, RetrySettings)
    return retry_settings


def check_flag(field: str, value: object) -> bool:
    """Returns a flag.

    Raises:
        InvalidSettingError: It is neither True nor False.
    """
    if not isinstance(value, bool):
        raise InvalidSettingError(field, value, "True or False")
    return value


def check_connections(connections: int) -> int:
    """Returns the number of connections of a publisher.

    Raises:
        InvalidSettingError: It is not a whole number from 1 to 8.
    """
    return _whole("connections", connections, 1, MAX_CONNECTIONS)


def _set(instance: object, field: str, value: object) -> None:
    object.__setattr__(instance, field, value)


def _instance(field: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise InvalidSettingError(field, value, f"a {kind.__name__}")


def _number(field: str, value: object, least: float, most: float) -> float:
    allowed = f"a number from {least:g} to {most:g}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidSettingError(field, value, allowed)
    if not least <= value <= most:
        raise InvalidSettingError(field, value, allowed)
    return float(value)


def _seconds(field: str, value: object, least: float, most: float) -> float:
    try:
        return _number(field, value.total_seconds() if isinstance(value, dt.timedelta) else value, least, most)
    except InvalidSettingError as error:
        allowed = f"seconds from {least:g} to {most:g}, or a datetime.timedelta"
        raise InvalidSettingError(field, value, allowed) from error


def _whole(field: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidSettingError(field, value, f"a whole number from {least} to {most}")
    return value
