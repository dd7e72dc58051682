"""The sink's Beam metrics: their names, and how a bundle reports them.

Metrics that are updated on another thread than the bundle's vanish silently, so outcomes are carried there
and counted there.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from apache_beam.internal.metrics.metric import ServiceCallMetric
from apache_beam.metrics import Metrics, monitoring_infos
from apache_beam.metrics.metric import Lineage

from beam_hedge.outcome import PublishOutcome
from beam_hedge.topics import parse_topic

if TYPE_CHECKING:
    from beam_hedge.errors import PublishError

NAMESPACE = "beam_hedge"
COUNTERS = (
    "messages_published",
    "bytes_published",
    "batches_published",
    "batches_failed",
    "messages_failed",
    "publish_attempts",
    "retries",
    "hedges_sent",
    "hedges_won",
    "hedges_failed",
    "hedges_throttled",
    "attempts_cancelled",
)
DISTRIBUTIONS = ("publish_latency_ms", "attempts_per_batch", "batch_messages", "batch_bytes")
GAUGE = "hedge_tokens_milli"


class SinkMetrics:
    """Counts what the batches of a DoFn's bundles came to.

    Counters are summed up here and given to Beam once a bundle, since each update of Beam's costs as much as
    a message. One DoFn instance has one; used on its bundles' thread only.
    """

    def __init__(self) -> None:
        self._counters = {name: Metrics.counter(NAMESPACE, name) for name in COUNTERS}
        self._latency, self._attempts, self._messages, self._bytes = (
            Metrics.distribution(NAMESPACE, name) for name in DISTRIBUTIONS
        )
        self._tokens = Metrics.gauge(NAMESPACE, GAUGE)
        self._sums: Counter[str] = Counter()
        self._reported = False
        self._topics: dict[str, ServiceCallMetric] = {}

    def start_bundle(self) -> None:
        """Forgets what a failed bundle left: its elements come again and are counted then."""
        self._sums.clear()

    def add_topic(self, topic: str) -> None:
        """Tells Beam once that this sink writes to a topic."""
        if topic in self._topics:
            return
        project, topic_id = parse_topic(topic)
        # Beam does not escape the parts of a name.
        parts = (Lineage.wrap_segment(part) for part in (project, topic_id))
        Lineage.sinks().add("pubsub", *parts, subtype="topic")
        labels = {
            monitoring_infos.SERVICE_LABEL: "PubSub",
            monitoring_infos.METHOD_LABEL: "google.pubsub.v1.Publisher.Publish",
            monitoring_infos.RESOURCE_LABEL: f"//pubsub.googleapis.com/{topic}",
            monitoring_infos.PTRANSFORM_LABEL: "",
        }
        self._topics[topic] = ServiceCallMetric(monitoring_infos.API_REQUEST_COUNT_URN, labels)

    def add(self, result: PublishOutcome | PublishError) -> None:
        """Counts one batch's outcome or error."""
        sums = self._sums
        if isinstance(result, PublishOutcome):
            sums["messages_published"] += result.messages
            sums["bytes_published"] += result.request_bytes
            sums["batches_published"] += 1
            sums["hedges_won"] += result.winner > 0
            # Beam keeps whole numbers: a distribution cuts off fractions.
            self._latency.update(round(result.latency * 1000))
        else:
            sums["batches_failed"] += 1
        sums["publish_attempts"] += result.attempts
        sums["retries"] += result.retries
        sums["hedges_sent"] += result.hedges
        sums["hedges_failed"] += result.hedges_failed
        sums["hedges_throttled"] += result.hedges_throttled
        sums["attempts_cancelled"] += result.attempts_cancelled
        calls = self._topics[result.topic]
        if isinstance(result, PublishOutcome):
            calls.call("ok")
        for status in result.refusals:
            calls.call(status.name)
        for _ in range(result.attempts_cancelled):
            calls.call("cancelled")
        self._attempts.update(result.attempts)
        self._messages.update(result.messages)
        self._bytes.update(result.request_bytes)

    def add_failed_messages(self, messages: int) -> None:
        """Counts messages that were given up: with their bundle, or as dead letters."""
        self._sums["messages_failed"] += messages

    def report(self, milli_tokens: int) -> None:
        """Gives Beam the sums of this bundle, and the tokens that are left."""
        for name, counter in self._counters.items():
            amount = self._sums[name]
            # Once even if it is 0: an alert on a counter needs the counter to be there.
            if amount or not self._reported:
                counter.inc(amount)
        self._reported = True
        self._sums.clear()
        self._tokens.set(milli_tokens)
