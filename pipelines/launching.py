"""From a command line to a pipeline that runs: what all pipelines have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.options.pipeline_options import GoogleCloudOptions, StandardOptions

from beam_hedge import InvalidSettingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines.command_line import CommandLine


def make_pipeline(
    command_line: CommandLine,
    options: PipelineOptions,
    build: Callable[[beam.Pipeline, PipelineOptions], Any],
) -> beam.Pipeline:
    """Makes a pipeline of options that were read from a command line.

    Raises:
        SystemExit: With status 2 after a message that names the flag, if an option is wrong.
    """
    try:
        pipeline = beam.Pipeline(options=options)
    except ValueError as error:
        command_line.fail(str(error))
    try:
        build(pipeline, options)
    except InvalidSettingError as error:
        command_line.refuse(error)
    return pipeline


def is_only_started(options: PipelineOptions) -> bool:
    """Tells whether nobody waits for the job: a launcher that makes a template has none to wait for."""
    google, standard = options.view_as(GoogleCloudOptions), options.view_as(StandardOptions)
    return bool(google.template_location or standard.no_wait_until_finish)
