"""Publisher configurations for the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beam_hedge.publisher_config import make_config, with_fingerprints
from beam_hedge.settings import DEFAULT_FLOW_CONTROL, HedgingSettings, RetrySettings

if TYPE_CHECKING:
    from beam_hedge.publisher_config import PublisherConfig

TOPIC = "projects/p-test/topics/out"


def make(**changes: Any) -> PublisherConfig:
    """Makes a configuration that has all defaults but for what is given."""
    arguments: dict[str, Any] = {
        "topic": TOPIC,
        "settings": HedgingSettings(),
        "retry_settings": RetrySettings(),
        "flow_control": DEFAULT_FLOW_CONTROL,
        "connections": 2,
        "client_options": None,
        "credentials": None,
        "tracing": False,
    }
    return with_fingerprints(make_config(**{**arguments, **changes}))
