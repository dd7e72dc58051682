"""Relays messages from a Pub/Sub subscription to a topic, hedged.

Run it as `python -m pipelines.pubsub_to_pubsub --input_subscription projects/PROJECT/subscriptions/SUBSCRIPTION
--topic projects/PROJECT/topics/TOPIC`; `--help` lists the other flags.

What becomes of a message:

- Its data and its attributes are published as they came, unless flags change attributes: renames first, all
  at once, then additions. What is renamed or added takes the place of an attribute of that name.
- Attributes whose names start with `goog`, which Pub/Sub itself adds for schemas and traces and refuses from
  publishers, are dropped and counted, unless they are renamed.
- Its ordering key is cleared and counted, as hedged messages are published without order;
  `--ordering_key_attribute` keeps it as an attribute.
- With `--id_label` it gets its message id as an attribute, unless it has that attribute. The id is equal on
  all copies of the message: those of hedges, of bundles that are tried again, and of messages that the
  subscription delivers again. Message ids are unique within a topic: relays from several topics to one want an
  id label each.
- With `--filter_key` a message without that attribute is not relayed, and counted; `--filter_value` must be
  equal to the attribute, `--filter_regex` must match all of it.
- A message that cannot be published (one that additions push over a limit; one that the topic's schema
  refuses) fails its bundle; with `--dead_letter_topic` it goes there, with the reason. A message that holds
  nothing but dropped attributes is dropped and counted, if there is no such topic. If the service refuses all
  of several messages that are in one batch, the topic is taken to be at fault, and the bundle fails.

On Dataflow a message is acknowledged when its bundle is finished, so that none is lost. Beam's direct runner
acknowledges messages when it pulls them, up to ten at once, before they are processed: there, a program that is
killed, or whose bundle fails four times, loses the messages of that pull. On SIGINT (Ctrl-C) and SIGTERM it
finishes what it has pulled, for a few seconds at most, and reports what it could not finish.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.options.pipeline_options import StandardOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner, SwitchingDirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from beam_hedge import WriteToPubSubHedged
from pipelines.command_line import CommandLine
from pipelines.counters import RELAY_COUNTERS, TALLY
from pipelines.dead_letter_topic import STEP, PublishDeadLetters
from pipelines.draining import Interrupted, SettledFn, drain, interrupts, unaccounted
from pipelines.launching import is_only_started, make_pipeline
from pipelines.options import HedgingOptions
from pipelines.relay_fn import RelayFn
from pipelines.relay_options import RelayOptions
from pipelines.summary import counts, summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.runner import PipelineResult

    from beam_hedge import WriteResult

_DRAIN_SECONDS = 2.0


def build(pipeline: beam.Pipeline, options: PipelineOptions) -> WriteResult:
    """Adds the steps that read messages and publish them.

    Args:
        pipeline: Where to add them.
        options: `RelayOptions` and `HedgingOptions` say what to relay and how to publish.

    Returns:
        The result of the sink.

    Raises:
        InvalidSettingError: An option is outside its limits, or does not go with another one.
    """
    relay, hedging = options.view_as(RelayOptions), options.view_as(HedgingOptions)
    is_direct = isinstance(pipeline.runner, SwitchingDirectRunner | BundleBasedDirectRunner)
    relay_fn = RelayFn(
        message_filter=relay.message_filter(),
        changes=relay.changes(hedging.id_label),
        id_label=hedging.id_label,
        ordering_key_attribute=relay.ordering_key_attribute,
        drop_empty=hedging.dead_letter_topic is None,
    )
    sink = WriteToPubSubHedged(
        **hedging.sink_arguments(),
        with_attributes=True,
        timestamp_attribute=relay.timestamp_attribute,
        with_outcomes=is_direct,
    )
    source = beam.io.ReadFromPubSub(subscription=relay.input_subscription, with_attributes=True)
    messages: Any = pipeline | "Read messages" >> source
    relayed = messages | "Relay" >> beam.ParDo(relay_fn).with_output_types(PubsubMessage)
    result: WriteResult = relayed | "Publish" >> sink
    if is_direct:
        _ = result.published | "Settle" >> beam.ParDo(SettledFn(dead_letters=False))
    if hedging.dead_letter_topic is not None:
        dead = result.failed | STEP >> PublishDeadLetters(hedging, with_outcomes=is_direct)
        if is_direct:
            _ = dead.published | "Settle dead letters" >> beam.ParDo(SettledFn(dead_letters=True))
    return result


def run(arguments: Sequence[str]) -> PipelineResult:
    """Runs the pipeline until it is interrupted, or starts it if it is to be a template.

    Args:
        arguments: The command line, without the program's name.

    Returns:
        Beam's result, if nobody waits for the job.

    Raises:
        SystemExit: With status 2 after a message, if a flag is wrong; with 0 after `--help`; with 128 and the
            signal's number after a report, if the process got SIGINT or SIGTERM.
    """
    command_line = CommandLine(
        arguments,
        program="python -m pipelines.pubsub_to_pubsub",
        description="Relays messages from a subscription to a topic, hedging batches that are late.",
        kinds=(RelayOptions, HedgingOptions),
        required=("input_subscription", "topic"),
    )
    options = command_line.options()
    # Beam's own flag takes no value, so that a launcher cannot give it.
    options.view_as(StandardOptions).streaming = True
    pipeline = make_pipeline(command_line, options, build)
    if isinstance(pipeline.runner, FnApiRunner):
        command_line.fail("argument --runner: FnApiRunner ends before a stream does; DirectRunner does not")
    TALLY.clear()
    with interrupts():
        try:
            result = pipeline.run()
            if is_only_started(options):
                return result
            result.wait_until_finish()
        except Interrupted as interrupted:
            drain(_DRAIN_SECONDS)
            _report("INTERRUPTED")
            raise SystemExit(interrupted.status) from None
        except Exception:
            _report("FAILED")
            raise
    print(summary(result.state, counts(result), RELAY_COUNTERS))  # noqa: T201 - what there is to say
    return result


def _report(state: str) -> None:
    counters = TALLY.counts()
    said = summary(state, counters, RELAY_COUNTERS)
    print(f"{said} In interrupted bundles: {unaccounted(counters):,}.", flush=True)  # noqa: T201


if __name__ == "__main__":
    run(sys.argv[1:])
