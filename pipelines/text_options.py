"""The options of the pipeline that reads text files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apache_beam.options.pipeline_options import PipelineOptions

from pipelines.attributes import names
from pipelines.flags import add_flag
from pipelines.values import checked, one_of

if TYPE_CHECKING:
    import argparse


class TextOptions(PipelineOptions):
    """What to read, what becomes of a line, and where to leave a record of what happened.

    Args:
        flags: The command line. Default: that of the process.

    Example:
        >>> TextOptions(["--input=orders/*.jsonl.gz"]).input
        'orders/*.jsonl.gz'
    """

    @classmethod
    def _add_argparse_args(cls, parser: argparse.ArgumentParser) -> None:
        add_flag(parser, "input", str, "The text files: a path or glob, local or gs://; .gz is decompressed.")
        add_flag(
            parser,
            "input_format",
            one_of("text", "json"),
            "What a line is: text, or json (one JSON object).",
            default="text",
        )
        add_flag(
            parser,
            "attribute_fields",
            checked(names),
            "With json: fields that become attributes, with commas between them.",
        )
        add_flag(parser, "data_field", str, "With json: the field that is the data, instead of the whole line.")
        add_flag(parser, "outcomes", str, "A file for the outcome of each batch, as JSON lines.")
