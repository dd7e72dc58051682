"""Batches' outcomes as a file of JSON lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import apache_beam as beam

if TYPE_CHECKING:
    from beam_hedge import PublishOutcome


class WriteOutcomes(beam.PTransform["beam.PCollection[PublishOutcome]", beam.PCollection[str]]):
    """Writes a JSON line for each batch.

    Its fields: `latency_ms`, `messages`, `attempts`, `hedges`, `hedges_throttled`, `winner` (0 is the
    original), `retries`.

    Args:
        path: The file. There is one line for each batch, not for each message, so one file holds them all.
            It is there, and complete, when the pipeline is done.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def expand(self, outcomes: beam.PCollection[PublishOutcome]) -> beam.PCollection[str]:
        """Adds the writing steps."""
        lines = outcomes | "To JSON" >> beam.Map(to_json).with_output_types(str)
        files: beam.PCollection[str] = lines | "Write" >> beam.io.WriteToText(
            self._path, num_shards=1, shard_name_template=""
        )
        return files


def to_json(outcome: PublishOutcome) -> str:
    """Returns an outcome as one line of JSON."""
    return json.dumps(
        {
            "latency_ms": round(outcome.latency * 1000, 3),
            "messages": outcome.messages,
            "attempts": outcome.attempts,
            "hedges": outcome.hedges,
            "hedges_throttled": outcome.hedges_throttled,
            "winner": outcome.winner,
            "retries": outcome.retries,
        }
    )
