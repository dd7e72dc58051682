"""The sink's Beam metrics: their names, and how a bundle reports them.

Metrics that are updated on another thread than the bundle's vanish silently, so outcomes are carried there
and counted there.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from apache_beam.internal.metrics.metric import Metrics as InternalMetrics
from apache_beam.metrics import Metrics, monitoring_infos
from apache_beam.metrics.metric import Lineage

from beam_hedge.outcome import PublishOutcome
from beam_hedge.topics import parse_topic

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    "connections_suspected",
    "connections_replaced",
)
DISTRIBUTIONS = ("publish_latency_ms", "attempts_per_batch", "batch_messages", "batch_bytes")
GAUGE = "hedge_tokens_milli"
# Counted by topic, too, where elements choose their topics: "messages_published:TOPIC", and so on.
COUNTERS_BY_TOPIC = ("messages_published", "batches_failed", "hedges_sent", "hedges_throttled")
# Beam keeps every counter for the life of a job, so their number must have a bound.
MAX_COUNTED_TOPICS = 100


class SinkMetrics:
    """Counts what the batches of a DoFn's bundles came to.

    Counters are summed up here and given to Beam once a bundle, since each update of Beam's costs as much as
    a message. One DoFn instance has one; used on its bundles' thread only.

    Args:
        by_topic: Whether some counters are kept for each topic besides, for the first 100 topics.
    """

    def __init__(self, *, by_topic: bool = False) -> None:
        self._by_topic = by_topic
        self._counters = {name: Metrics.counter(NAMESPACE, name) for name in COUNTERS}
        self._latency, self._attempts, self._messages, self._bytes = (
            Metrics.distribution(NAMESPACE, name) for name in DISTRIBUTIONS
        )
        self._tokens = Metrics.gauge(NAMESPACE, GAUGE)
        self._sums: defaultdict[str, int] = defaultdict(int)
        # By topic and status. Beam's ServiceCallMetric makes a counter anew for each call, which costs as much
        # as all else that is counted of a small bundle.
        self._calls: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._call_counters: dict[tuple[str, str], Any] = {}
        self._reported = False
        self._topics: set[str] = set()

    def start_bundle(self) -> None:
        """Forgets what a failed bundle left: its elements come again and are counted then.

        Calls that were made stay counted.
        """
        self._sums.clear()

    def add_topic(self, topic: str) -> None:
        """Tells Beam once that this sink writes to a topic."""
        if topic in self._topics:
            return
        project, topic_id = parse_topic(topic)
        # Beam does not escape the parts of a name.
        parts = (Lineage.wrap_segment(part) for part in (project, topic_id))
        Lineage.sinks().add("pubsub", *parts, subtype="topic")
        self._topics.add(topic)
        if self._by_topic and len(self._topics) <= MAX_COUNTED_TOPICS:
            for name in COUNTERS_BY_TOPIC:
                by_topic = f"{name}:{topic_id}"
                self._counters[by_topic] = Metrics.counter(NAMESPACE, by_topic)

    def add(self, result: PublishOutcome | PublishError) -> None:
        """Counts one batch's outcome or error."""
        counts = _counts(result)
        for name, amount in counts.items():
            self._sums[name] += amount
        if self._by_topic:
            _project, topic_id = parse_topic(result.topic)
            for name in COUNTERS_BY_TOPIC:
                self._sums[f"{name}:{topic_id}"] += counts.get(name, 0)
        if isinstance(result, PublishOutcome):
            # Beam keeps whole numbers: a distribution cuts off fractions.
            self._latency.update(round(result.latency * 1000))
        if not result.shared:
            self._count_calls(result)
        self._attempts.update(result.attempts)
        self._messages.update(result.messages)
        self._bytes.update(result.request_bytes)

    def _count_calls(self, result: PublishOutcome | PublishError) -> None:
        if isinstance(result, PublishOutcome):
            self._calls[result.topic, "ok"] += 1
        for status in result.refusals:
            self._calls[result.topic, status.name.lower()] += 1
        if result.attempts_cancelled:
            self._calls[result.topic, "cancelled"] += result.attempts_cancelled

    def add_failed_messages(self, messages: int) -> None:
        """Counts messages that were given up: with their bundle, or as dead letters."""
        self._sums["messages_failed"] += messages

    def report(self, milli_tokens: int, connection_counts: Mapping[str, int]) -> None:
        """Gives Beam the sums of this bundle, the tokens that are left, and what happened to connections."""
        for name, amount in connection_counts.items():
            self._sums[name] += amount
        if not self._reported:
            # Once even if it is 0: an alert on a counter needs the counter to be there.
            for name in self._counters:
                self._sums[name] += 0
        for name, amount in self._sums.items():
            # Topics that are too many have no counter.
            counter = self._counters.get(name) if amount or not self._reported else None
            if counter is not None:
                counter.inc(amount)
        self._reported = True
        self._sums.clear()
        for key, calls in self._calls.items():
            self._call_counter(key).inc(calls)
        self._calls.clear()
        self._tokens.set(milli_tokens)

    def _call_counter(self, key: tuple[str, str]) -> Any:
        if key not in self._call_counters:
            topic, status = key
            labels = {
                monitoring_infos.SERVICE_LABEL: "PubSub",
                monitoring_infos.METHOD_LABEL: "google.pubsub.v1.Publisher.Publish",
                monitoring_infos.RESOURCE_LABEL: f"//pubsub.googleapis.com/{topic}",
                monitoring_infos.PTRANSFORM_LABEL: "",
                monitoring_infos.STATUS_LABEL: status,
            }
            self._call_counters[key] = InternalMetrics.counter(
                monitoring_infos.API_REQUEST_COUNT_URN, labels=labels, process_wide=True
            )
        return self._call_counters[key]


def _counts(result: PublishOutcome | PublishError) -> dict[str, int]:
    """Returns what one batch adds to counters; what is not there is 0."""
    if isinstance(result, PublishOutcome):
        counts = {
            "messages_published": result.messages,
            "bytes_published": result.request_bytes,
            "batches_published": 1,
        }
    else:
        counts = {"batches_failed": 1}
    if not result.shared:
        counts["publish_attempts"] = result.attempts
    if result.attempts > 1 or result.hedges_throttled:
        counts["retries"] = result.retries
        counts["hedges_sent"] = result.hedges
        counts["hedges_won"] = int(isinstance(result, PublishOutcome) and result.winner > 0)
        counts["hedges_failed"] = result.hedges_failed
        counts["hedges_throttled"] = result.hedges_throttled
        counts["attempts_cancelled"] = result.attempts_cancelled
    return counts
