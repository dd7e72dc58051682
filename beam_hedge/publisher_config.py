"""All that makes a publisher, checked, comparable and picklable: what a DoFn carries to the worker."""

from __future__ import annotations

import dataclasses
import hashlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.api_core import client_options as client_options_lib
from google.auth.credentials import Credentials
from google.cloud.pubsub_v1.types import LimitExceededBehavior

from beam_hedge.errors import InvalidSettingError
from beam_hedge.settings import (
    DEFAULT_FLOW_CONTROL,
    HedgingSettings,
    RetrySettings,
    check_connections,
    check_delay_fits,
    check_flag,
    check_flow_control,
    check_hedging_settings,
    check_retry_settings,
)
from beam_hedge.topics import parse_topic

if TYPE_CHECKING:
    from google.cloud.pubsub_v1.types import PublishFlowControl


@dataclass(frozen=True)
class PublisherConfig:
    """Equal configurations of one process share one publisher.

    Credentials and client options are no part of the comparison, since each unpickled copy is another object:
    their fingerprints stand for them.
    """

    topic: str | None
    settings: HedgingSettings | None
    retry_settings: RetrySettings
    flow_control: PublishFlowControl
    connections: int
    client_options: client_options_lib.ClientOptions | None = field(default=None, compare=False, repr=False)
    credentials: Credentials | None = field(default=None, compare=False, repr=False)
    tracing: bool = False
    fingerprints: tuple[str | None, str | None] = (None, None)


def make_config(
    *,
    topic: str | None,
    settings: HedgingSettings | Mapping[str, Any] | None,
    retry_settings: RetrySettings | Mapping[str, Any],
    flow_control: PublishFlowControl | Mapping[str, Any],
    connections: int,
    client_options: client_options_lib.ClientOptions | dict[str, Any] | None,
    credentials: Credentials | None,
    tracing: bool,
) -> PublisherConfig:
    """Checks what makes a publisher. Mappings, as YAML has them, stand for the settings' classes.

    Raises:
        InvalidSettingError: A value is not allowed.
    """
    if topic is not None:
        parse_topic(topic)
    hedging = check_hedging_settings(from_mapping("settings", HedgingSettings(), settings))
    retry = check_retry_settings(from_mapping("retry_settings", RetrySettings(), retry_settings))
    check_delay_fits(hedging, retry)
    options = _client_options(client_options)
    if credentials is not None and not isinstance(credentials, Credentials):
        raise InvalidSettingError(
            "credentials", type(credentials).__name__, "google.auth.credentials.Credentials"
        )
    if options is not None and options.api_key and (credentials is not None or options.credentials_file):
        raise InvalidSettingError("client_options.api_key", "a key", "left out where there are credentials")
    return PublisherConfig(
        topic=topic,
        settings=hedging,
        retry_settings=retry,
        flow_control=check_flow_control(from_mapping("flow_control", DEFAULT_FLOW_CONTROL, flow_control)),
        connections=check_connections(connections),
        client_options=options,
        credentials=credentials,
        tracing=check_flag("enable_open_telemetry_tracing", tracing),
    )


def with_fingerprints(config: PublisherConfig) -> PublisherConfig:
    """Makes a configuration comparable with its copies on workers.

    Raises:
        InvalidSettingError: The credentials or the client options cannot be pickled, as workers need them.
    """
    fingerprints = (
        _fingerprint("client_options", config.client_options),
        _fingerprint("credentials", config.credentials),
    )
    return dataclasses.replace(config, fingerprints=fingerprints)


def from_mapping(name: str, default: Any, value: Any) -> Any:
    """Makes settings of a mapping of some of their fields; returns anything else as it is.

    Args:
        name: What the settings are called.
        default: What gives the other fields.
        value: A mapping, or settings.

    Raises:
        InvalidSettingError: The mapping has a key that is no field.
    """
    if not isinstance(value, Mapping):
        return value
    is_dataclass = dataclasses.is_dataclass(default)
    allowed = [item.name for item in dataclasses.fields(default)] if is_dataclass else default._fields
    # Beam YAML adds the line that a mapping came from.
    given = {key: item for key, item in value.items() if not str(key).startswith("__")}
    for key, item in given.items():
        if key not in allowed:
            raise InvalidSettingError(f"{name}.{key}", item, f"left out: {name} has {', '.join(allowed)}")
    behaviour = given.get("limit_exceeded_behavior")
    if isinstance(behaviour, str) and behaviour.lower() in {known.value for known in LimitExceededBehavior}:
        given["limit_exceeded_behavior"] = LimitExceededBehavior(behaviour.lower())
    return dataclasses.replace(default, **given) if is_dataclass else default._replace(**given)


def _client_options(options: Any) -> client_options_lib.ClientOptions | None:
    if options is None or isinstance(options, client_options_lib.ClientOptions):
        return options
    allowed = "a dict or a google.api_core.client_options.ClientOptions"
    # The values are not named: one of them can be an API key.
    if not isinstance(options, dict) or not all(isinstance(name, str) for name in options):
        raise InvalidSettingError("client_options", type(options).__name__, allowed)
    try:
        return client_options_lib.from_dict(options)
    except ValueError as error:
        raise InvalidSettingError("client_options", sorted(options), f"{allowed} ({error})") from error


def _fingerprint(name: str, value: object) -> str | None:
    if value is None:
        return None
    try:
        return hashlib.sha256(pickle.dumps(value)).hexdigest()
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise InvalidSettingError(
            name, type(value).__name__, f"picklable, to reach the workers ({error})"
        ) from error
