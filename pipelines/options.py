"""The options of every pipeline that publishes hedged: the topic, and each setting of the sink."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

from apache_beam.options.pipeline_options import PipelineOptions
from google.cloud.pubsub_v1.types import BatchSettings, PublishFlowControl

from beam_hedge import HedgingSettings, RetrySettings, WriteToPubSubHedged
from pipelines.attributes import name
from pipelines.flags import add_flag
from pipelines.values import behavior, boolean, checked, duration, number, to_behavior, whole

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


class _Setting(NamedTuple):
    """What a flag sets: a field of one of the sink's settings objects."""

    field: str
    read: Callable[[str], Any]
    help: str


_HEDGING = {
    "hedge_delay": _Setting(
        "hedge_delay", duration, "Wait for an attempt before one more is sent, 100ms to 10s."
    ),
    "hedge_max_tokens": _Setting("max_tokens", whole, "Most tokens for hedges that can be saved up, 1 to 250."),
    "hedge_refill_ratio": _Setting("refill_ratio", number, "Tokens for each published batch, 0.001 to 0.2."),
    "hedge_initial_tokens": _Setting("initial_tokens", whole, "Tokens at the start, 0 to hedge_max_tokens."),
}
_RETRY = {
    "initial_rpc_timeout": _Setting("initial_rpc_timeout", duration, "Deadline of each try of a batch."),
    "total_timeout": _Setting("total_timeout", duration, "Time for all tries of a batch together."),
    "initial_retry_delay": _Setting("initial_retry_delay", duration, "Longest first wait between two tries."),
    "retry_delay_multiplier": _Setting("retry_delay_multiplier", number, "What that wait grows by, 1 to 100."),
    "max_retry_delay": _Setting("max_retry_delay", duration, "Longest wait between two tries."),
}
_BATCH = {
    "batch_max_messages": _Setting("max_messages", whole, "Most messages of a batch, 1 to 1000."),
    "batch_max_bytes": _Setting("max_bytes", whole, "Most bytes of a batch's request, 1 to 10000000."),
    "batch_max_latency": _Setting("max_latency", duration, "Age at which a batch is sent before it is full."),
}
_FLOW_CONTROL = {
    "flow_control_message_limit": _Setting(
        "message_limit", whole, "Most messages of a worker process in flight."
    ),
    "flow_control_byte_limit": _Setting("byte_limit", whole, "Most bytes of a worker process in flight."),
}
_BEHAVIOR = "limit_exceeded_behavior"
# The sink's own defaults, by the argument they are for.
_DEFAULTS: dict[str, Any] = {
    argument: parameter.default
    for argument, parameter in inspect.signature(WriteToPubSubHedged).parameters.items()
}
_GROUPS = (
    (_HEDGING, _DEFAULTS["settings"]),
    (_RETRY, _DEFAULTS["retry_settings"]),
    (_BATCH, _DEFAULTS["batch_settings"]),
    (_FLOW_CONTROL, _DEFAULTS["flow_control"]),
)


class HedgingOptions(PipelineOptions):
    """Where to publish, and how: hedging, retries, batches, flow control, connections, dead letters.

    Args:
        flags: The command line. Default: that of the process.

    Example:
        >>> options = HedgingOptions(["--topic=projects/p/topics/orders", "--hedge_delay=500ms"])
        >>> options.hedge_delay, options.enable_hedging
        (0.5, True)
    """

    @classmethod
    def _add_argparse_args(cls, parser: argparse.ArgumentParser) -> None:
        add_flag(parser, "topic", str, "Where to publish: projects/PROJECT/topics/TOPIC.")
        add_flag(parser, "enable_hedging", boolean, "Whether late batches are hedged.", default=True)
        for settings, defaults in _GROUPS:
            for flag, setting in settings.items():
                add_flag(parser, flag, setting.read, setting.help, default=getattr(defaults, setting.field))
        add_flag(
            parser,
            f"flow_control_{_BEHAVIOR}",
            behavior,
            "What happens at these limits: block (wait), error (fail) or ignore.",
            default=_DEFAULTS["flow_control"].limit_exceeded_behavior.name.lower(),
        )
        add_flag(
            parser,
            "connections",
            whole,
            "TCP connections of a worker process, 1 to 8.",
            default=_DEFAULTS["connections"],
        )
        add_flag(parser, "pubsub_endpoint", str, "A Pub/Sub endpoint to use, such as that of one region.")
        add_flag(parser, "id_label", checked(name), "Attribute for an id, equal on all copies of a message.")
        add_flag(
            parser,
            "dead_letter_topic",
            str,
            "Where messages go that cannot be published; without it they fail the pipeline.",
        )

    def sink_arguments(self) -> dict[str, Any]:
        """Returns how `WriteToPubSubHedged` is to publish: its arguments, by name, but `id_label`.

        Raises:
            InvalidSettingError: A setting of hedging or of retries is outside its limits.
        """
        # Built, and so checked, even if they are not used.
        hedging = HedgingSettings(**self._fields(_HEDGING))
        exceeded = to_behavior(getattr(self, f"flow_control_{_BEHAVIOR}"))
        return {
            "topic": self.topic,
            "settings": hedging if self.enable_hedging else None,
            "retry_settings": RetrySettings(**self._fields(_RETRY)),
            "batch_settings": BatchSettings(**self._fields(_BATCH)),
            "flow_control": PublishFlowControl(**self._fields(_FLOW_CONTROL), limit_exceeded_behavior=exceeded),
            "connections": self.connections,
            "client_options": {"api_endpoint": self.pubsub_endpoint} if self.pubsub_endpoint else None,
            "dead_letter": self.dead_letter_topic is not None,
        }

    def _fields(self, settings: dict[str, _Setting]) -> dict[str, Any]:
        return {setting.field: getattr(self, flag) for flag, setting in settings.items()}


def flag_of(field: str) -> str:
    """Returns the flag, without dashes, that sets a field which an `InvalidSettingError` names."""
    last = field.rpartition(".")[2]
    for settings, _ in _GROUPS:
        for flag, setting in settings.items():
            if setting.field == last:
                return flag
    return last
