"""All flags of all pipelines, and how their command lines are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines import pubsub_to_pubsub, text_to_pubsub
from pipelines.command_line import CommandLine
from pipelines.options import HedgingOptions
from pipelines.relay_options import RelayOptions
from pipelines.text_options import TextOptions
from tests.server.serving import TOPIC

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from apache_beam.options.pipeline_options import PipelineOptions

SUBSCRIPTION = "projects/p-test/subscriptions/source-sub"

# Each flag, its default, and another value: as it is written, and as it is understood.
Flags = dict[str, tuple[Any, str, Any]]
# What reaches the sink's arguments as it is.
SETTINGS: Flags = {
    "enable_hedging": (True, "false", False),
    "hedge_delay": (1.0, "250ms", 0.25),
    "hedge_max_tokens": (50, "7", 7),
    "hedge_refill_ratio": (0.1, "0.05", 0.05),
    "hedge_initial_tokens": (0, "3", 3),
    "initial_rpc_timeout": (60.0, "2m", 120.0),
    "total_timeout": (600.0, "1h", 3600.0),
    "initial_retry_delay": (0.1, "0.2", 0.2),
    "retry_delay_multiplier": (4.0, "1.5", 1.5),
    "max_retry_delay": (60.0, "30s", 30.0),
    "batch_max_messages": (100, "1000", 1000),
    "batch_max_bytes": (1_000_000, "10000000", 10_000_000),
    "batch_max_latency": (0.01, "5ms", 0.005),
    "flow_control_message_limit": (10_000, "1", 1),
    "flow_control_byte_limit": (100_000_000, "2", 2),
    "flow_control_limit_exceeded_behavior": ("block", "Error", "error"),
    "connections": (2, "8", 8),
    "pubsub_endpoint": (None, "us-east1-pubsub.googleapis.com:443", "us-east1-pubsub.googleapis.com:443"),
}
_SHARED: Flags = {
    "topic": (None, "projects/p/topics/t-2", "projects/p/topics/t-2"),
    **SETTINGS,
    "id_label": (None, "id", "id"),
    "dead_letter_topic": (None, "projects/p/topics/dead", "projects/p/topics/dead"),
}


@dataclass(frozen=True)
class Launchable:
    """A pipeline, as the tests of its command line see it.

    Attributes:
        module: Its program.
        kinds: The classes of its options.
        required: The flags that must be given, and a value of each.
        flags: All its flags.
    """

    module: ModuleType
    kinds: tuple[type[PipelineOptions], ...]
    required: dict[str, str]
    flags: Flags

    def enough(self, folder: Path) -> list[str]:
        """Makes what the required flags name, and returns the arguments without which no launch succeeds."""
        required = dict(self.required)
        if "input" in required:
            file = folder / "lines.txt"
            file.write_bytes(b"a line\n")
            required["input"] = str(file)
        return [f"--{flag}={value}" for flag, value in required.items()]

    def command_line(self, *arguments: str) -> CommandLine:
        """Reads a command line as the pipeline does."""
        return CommandLine(
            arguments,
            program="the-pipeline",
            description="",
            kinds=self.kinds,
            required=tuple(self.required),
        )

    def parse(self, *arguments: str) -> dict[str, Any]:
        """Parses arguments, and what is required beside them; returns the values of its own flags."""
        given = [argument.split("=")[0] for argument in arguments]
        own = [f"--{flag}={value}" for flag, value in self.required.items() if f"--{flag}" not in given]
        options = self.command_line(*own, *arguments).options()
        views = [options.view_as(kind) for kind in self.kinds]
        return {flag: getattr(view, flag) for view in views for flag in self.flags if flag in dir(view)}


LAUNCHABLE = {
    "text_to_pubsub": Launchable(
        module=text_to_pubsub,
        kinds=(TextOptions, HedgingOptions),
        required={"input": "x", "topic": TOPIC},
        flags={
            **_SHARED,
            "input": (None, "a/*.gz", "a/*.gz"),
            "input_format": ("text", "JSON", "json"),
            "attribute_fields": (None, "a, b", "a, b"),
            "data_field": (None, "payload", "payload"),
            "outcomes": (None, "out.jsonl", "out.jsonl"),
        },
    ),
    "pubsub_to_pubsub": Launchable(
        module=pubsub_to_pubsub,
        kinds=(RelayOptions, HedgingOptions),
        required={"input_subscription": SUBSCRIPTION, "topic": TOPIC},
        flags={
            **_SHARED,
            "input_subscription": (None, SUBSCRIPTION + "-2", SUBSCRIPTION + "-2"),
            "filter_key": (None, "country", "country"),
            "filter_value": (None, "NL", "NL"),
            "filter_regex": (None, "N[L-O]", "N[L-O]"),
            "rename_attributes": (None, "a=b", "a=b"),
            "add_attributes": (None, "a=b", "a=b"),
            "ordering_key_attribute": (None, "key", "key"),
            "timestamp_attribute": (None, "ts", "ts"),
        },
    ),
}
# Pairs of a pipeline's name and one of its flags, for tests with parameters.
ALL_FLAGS = [(name, flag) for name, launchable in LAUNCHABLE.items() for flag in launchable.flags]
ALL_SETTINGS = [(name, flag) for name in LAUNCHABLE for flag in SETTINGS]
