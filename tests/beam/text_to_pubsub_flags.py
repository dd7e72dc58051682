"""All flags of `pipelines.text_to_pubsub`, and how its command line is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.command_line import CommandLine
from pipelines.options import HedgingOptions
from pipelines.text_options import TextOptions
from tests.server.serving import TOPIC

if TYPE_CHECKING:
    from pathlib import Path

# Each flag, its default, and another value: as it is written, and as it is understood.
FLAGS: dict[str, tuple[Any, str, Any]] = {
    "topic": (None, "projects/p/topics/t-2", "projects/p/topics/t-2"),
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
    "input": (None, "a/*.gz", "a/*.gz"),
    "outcomes": (None, "out.jsonl", "out.jsonl"),
}


def command_line(*arguments: str) -> CommandLine:
    """Reads a command line as the pipeline does."""
    return CommandLine(
        arguments,
        program="the-pipeline",
        description="",
        kinds=(TextOptions, HedgingOptions),
        required=("input", "topic"),
    )


def enough(folder: Path) -> list[str]:
    """Makes a file, and returns the arguments without which no launch succeeds."""
    file = folder / "lines.txt"
    file.write_bytes(b"a line\n")
    return [f"--input={file}", f"--topic={TOPIC}"]
