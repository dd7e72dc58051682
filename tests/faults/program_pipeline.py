"""A pipeline on two worker processes: `python -m tests.faults.program_pipeline MESSAGES`.

Each message is its number and the process that publishes it, so that a test can tell whose it was.
"""

from __future__ import annotations

import os
import sys

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from beam_hedge import WriteToPubSubHedged
from tests.beam.pipelines import RUNNERS, batches_of
from tests.server.serving import TOPIC, UNHURRIED


def sign(number: int) -> bytes:
    """Adds the process to a number."""
    return b"%d %d" % (number, os.getpid())


def run(messages: int) -> None:
    """Runs the pipeline to its end."""
    with beam.Pipeline(options=PipelineOptions(RUNNERS["processes"])) as pipeline:
        numbers = pipeline | beam.Create(range(messages)) | beam.Reshuffle()
        _ = numbers | beam.Map(sign) | WriteToPubSubHedged(TOPIC, UNHURRIED, batch_settings=batches_of(5))


if __name__ == "__main__":
    run(int(sys.argv[1]))
