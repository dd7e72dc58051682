"""What the runner's console shows of the sink."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from apache_beam.transforms.display import DisplayDataItem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.cloud.pubsub_v1.types import BatchSettings

    from beam_hedge.publisher_config import PublisherConfig


def display_items(
    config: PublisherConfig, batch_settings: BatchSettings, **more: bool | str | None
) -> dict[str, DisplayDataItem]:
    """Returns the settings as Beam's display data; what is unset is left out."""
    items: dict[str, Any] = {**more, "hedging": config.settings is not None, "connections": config.connections}
    for prefix, values in (
        ("", dataclasses.asdict(config.settings) if config.settings else {}),
        ("retry_", dataclasses.asdict(config.retry_settings)),
        ("batch_", batch_settings._asdict()),
        ("flow_control_", config.flow_control._asdict()),
    ):
        items.update({prefix + name: value for name, value in values.items()})
    return plain_items(items)


def plain_items(values: Mapping[str, object]) -> dict[str, DisplayDataItem]:
    """Returns values as Beam's display data; what is `None` is left out."""
    return {
        name: DisplayDataItem(_plain(value), label=name.replace("_", " "))
        for name, value in values.items()
        if value is not None
    }


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float) else str(value)
