"""Publishes each line of text files to a Pub/Sub topic, hedged.

Run it as `python -m pipelines.text_to_pubsub --input FILES --topic projects/PROJECT/topics/TOPIC`; `--help`
lists the other flags.

What becomes of a line:

- A line ends with LF or CRLF, which is no part of it. Lines without any byte are skipped and counted.
- A UTF-8 byte-order mark at the beginning of a file is removed and counted.
- With `--input_format=text` a line is the message's data, byte for byte, also if it is not UTF-8.
- With `--input_format=json` a line must be a JSON object in UTF-8. All of it is the data, or the field that
  `--data_field` names. Fields that `--attribute_fields` names become attributes: texts as they are, other
  values as the JSON that stands in the file; missing and null ones are left out and counted.
- A line that cannot be published (too long, no JSON object, without its data field, an attribute over a limit)
  fails the pipeline; with `--dead_letter_topic` it goes there, with the reason. A line is held in memory whole.
- A pattern that matches no file, or a file that is compressed in another way than gzip, stops the launch.
  A damaged gzip file fails the pipeline.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from beam_hedge import InvalidSettingError, WriteToPubSubHedged
from pipelines.attributes import names
from pipelines.command_line import CommandLine
from pipelines.counters import TEXT_COUNTERS
from pipelines.dead_letter_topic import STEP, PublishDeadLetters
from pipelines.json_lines import FAILED, ParseJsonLines
from pipelines.launching import is_only_started, make_pipeline
from pipelines.lines import ReadLines, why_unreadable
from pipelines.options import HedgingOptions
from pipelines.outcomes import WriteOutcomes
from pipelines.summary import counts, summary
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
        InvalidSettingError: An option is outside its limits, or does not go with another one.
    """
    text, hedging = options.view_as(TextOptions), options.view_as(HedgingOptions)
    is_json = text.input_format == "json"
    for field in ("attribute_fields", "data_field"):
        if getattr(text, field) is not None and not is_json:
            raise InvalidSettingError(field, getattr(text, field), "given together with input_format=json")
    sink = WriteToPubSubHedged(
        **hedging.sink_arguments(),
        id_label=hedging.id_label,
        with_attributes=is_json,
        with_outcomes=text.outcomes is not None,
    )
    messages: Any = pipeline | "Read lines" >> ReadLines(text.input)
    refused = []
    if is_json:
        fields = names(text.attribute_fields) if text.attribute_fields is not None else ()
        parse = ParseJsonLines(fields, text.data_field, dead_letter=hedging.dead_letter_topic is not None)
        parsed = messages | "Parse JSON" >> parse
        messages = parsed.messages
        refused.append(parsed[FAILED])
    result: WriteResult = messages | "Publish" >> sink
    if hedging.dead_letter_topic is not None:
        failed = [*refused, result.failed] | "All refused" >> beam.Flatten()
        _ = failed | STEP >> PublishDeadLetters(hedging)
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
    pipeline = make_pipeline(command_line, options, build)
    files = options.view_as(TextOptions).input
    if (reason := why_unreadable(files)) is not None:
        command_line.fail(f"argument --input: {files!r} {reason}")
    result = pipeline.run()
    if is_only_started(options):
        return result
    result.wait_until_finish()
    print(summary(result.state, counts(result), TEXT_COUNTERS))  # noqa: T201 - what the program has to say to its user
    return result


if __name__ == "__main__":
    run(sys.argv[1:])
