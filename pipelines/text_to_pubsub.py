"""Publishes each line of text files to a Pub/Sub topic, hedged.

Run it as `python -m pipelines.text_to_pubsub --input FILES --topic projects/PROJECT/topics/TOPIC`; `--help`
lists the other flags.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import apache_beam as beam
from apache_beam.options.pipeline_options import GoogleCloudOptions, StandardOptions

from beam_hedge import InvalidSettingError, WriteToPubSubHedged
from pipelines.command_line import CommandLine
from pipelines.lines import ReadLines, why_unreadable
from pipelines.options import HedgingOptions
from pipelines.outcomes import WriteOutcomes
from pipelines.summary import summary
from pipelines.text_options import TextOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.runner import PipelineResult

    from beam_hedge import WriteResult


def build(pipeline: beam.Pipeline, options: PipelineOptions) -> WriteResult:
    """Adds the steps that read the lines and publish them.

    Args:
        pipeline: Where to add them.
        options: `TextOptions` and `HedgingOptions` say what to read and how to publish.

    Returns:
        The result of the sink.

    Raises:
        InvalidSettingError: An option is outside its limits.
    """
    text = options.view_as(TextOptions)
    arguments = options.view_as(HedgingOptions).sink_arguments()
    sink = WriteToPubSubHedged(**arguments, with_outcomes=text.outcomes is not None)
    result: WriteResult = pipeline | "Read lines" >> ReadLines(text.input) | "Publish" >> sink
    if text.outcomes is not None:
        _ = result.published | "Write outcomes" >> WriteOutcomes(text.outcomes)
    return result


def run(arguments: Sequence[str]) -> PipelineResult:
    """Runs the pipeline to its end, or starts it if it is to be a template.

    Args:
        arguments: The command line, without the program's name.

    Returns:
        Beam's result.

    Raises:
        SystemExit: With status 2 after a message, if a flag is wrong; with 0 after `--help`.
    """
    command_line = CommandLine(
        arguments,
        program="python -m pipelines.text_to_pubsub",
        description="Publishes each line of text files to a Pub/Sub topic, hedging batches that are late.",
        kinds=(TextOptions, HedgingOptions),
        required=("input", "topic"),
    )
    options = command_line.options()
    try:
        pipeline = beam.Pipeline(options=options)
    except ValueError as error:
        command_line.fail(str(error))
    try:
        build(pipeline, options)
    except InvalidSettingError as error:
        command_line.refuse(error)
    files = options.view_as(TextOptions).input
    if (reason := why_unreadable(files)) is not None:
        command_line.fail(f"argument --input: {files!r} {reason}")
    result = pipeline.run()
    # A launcher that makes a template must not wait for a job that does not run.
    if (
        options.view_as(GoogleCloudOptions).template_location
        or options.view_as(StandardOptions).no_wait_until_finish
    ):
        return result
    result.wait_until_finish()
    print(summary(result))  # noqa: T201 - what the program has to say to its user
    return result


if __name__ == "__main__":
    run(sys.argv[1:])
