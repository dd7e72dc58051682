"""What a person is told about the parameters that say where to publish, and how: of all pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from templates.kinds import BOOLEAN, DURATION, ENDPOINT, NUMBER, TEXT, TOPIC, WHOLE, choice
from templates.parameter import Parameter

if TYPE_CHECKING:
    from templates.kinds import Kind

_TARGET = "Target"
_HEDGING = "Hedging"
_RETRIES = "Retries"
_BATCHES = "Batches"
_FLOW = "Flow control and connections"


def _hedging(label: str, help_text: str, kind: Kind) -> Parameter:
    return Parameter(label, help_text, kind, parent="enable_hedging", shown_if=("true",))


SINK_PARAMETERS = {
    "topic": Parameter(
        "Output topic",
        "Where to publish, as projects/PROJECT/topics/TOPIC. The job's worker account needs the role "
        "roles/pubsub.publisher on it.",
        TOPIC,
        _TARGET,
    ),
    "enable_hedging": Parameter(
        "Hedge late batches",
        "If it is true, a batch that is late is sent a second time on another connection, and the first answer "
        "wins. If it is false, batches are published in the same way, but never twice at once.",
        BOOLEAN,
        _HEDGING,
    ),
    "hedge_delay": _hedging(
        "Hedge delay",
        "How long to wait for an attempt before one more is sent: 100ms to 10s, shorter than the timeouts. A "
        "good start is the 99th percentile of the topic's publish request latency.",
        DURATION,
    ),
    "hedge_max_tokens": _hedging(
        "Most saved hedges",
        "How many hedges each worker process can save up, 1 to 250. It limits how many are sent in one burst.",
        WHOLE,
    ),
    "hedge_refill_ratio": _hedging(
        "Hedges for each batch",
        "What each published batch adds to the saved hedges, 0.001 to 0.2. It limits the share of extra "
        "requests: 0.1 is one hedge for ten batches.",
        NUMBER,
    ),
    "hedge_initial_tokens": _hedging(
        "Hedges at the start",
        "How many hedges each worker process has before its first batch, 0 to the most that it can save up.",
        WHOLE,
    ),
    "initial_rpc_timeout": Parameter(
        "Timeout of a try",
        "How long one try of a batch may take, such as 60s. Keep it long: a short one cancels work that the "
        "service has half done.",
        DURATION,
        _RETRIES,
    ),
    "total_timeout": Parameter(
        "Timeout of a batch",
        "How long all tries of a batch may take together, such as 10m. Then the batch fails, and its bundle "
        "with it.",
        DURATION,
        _RETRIES,
    ),
    "initial_retry_delay": Parameter(
        "First wait between tries",
        "The longest wait before a batch is tried for the second time, such as 100ms.",
        DURATION,
        _RETRIES,
    ),
    "retry_delay_multiplier": Parameter(
        "Growth of the wait",
        "How many times as long the wait is after each further try, 1 to 100.",
        NUMBER,
        _RETRIES,
    ),
    "max_retry_delay": Parameter(
        "Longest wait between tries",
        "The wait between two tries does not grow beyond this, such as 60s.",
        DURATION,
        _RETRIES,
    ),
    "batch_max_messages": Parameter(
        "Messages of a batch",
        "How many messages a batch can have, 1 to 1000. Larger batches cost less CPU for each message.",
        WHOLE,
        _BATCHES,
    ),
    "batch_max_bytes": Parameter(
        "Bytes of a batch",
        "How many bytes the request of a batch can have, 1 to 10000000. A larger message goes alone.",
        WHOLE,
        _BATCHES,
    ),
    "batch_max_latency": Parameter(
        "Age of a batch",
        "A batch that is older than this when a message comes is sent before it is full, such as 10ms.",
        DURATION,
        _BATCHES,
    ),
    "flow_control_message_limit": Parameter(
        "Messages in flight",
        "How many messages each worker process can have in flight, at least 1.",
        WHOLE,
        _FLOW,
    ),
    "flow_control_byte_limit": Parameter(
        "Bytes in flight",
        "How many bytes each worker process can have in flight, at least 1.",
        WHOLE,
        _FLOW,
    ),
    "flow_control_limit_exceeded_behavior": Parameter(
        "At these limits",
        "What happens when a worker process has that much in flight: block, error or ignore.",
        choice(block="Wait until there is room", error="Fail the bundle", ignore="Send all the same"),
        _FLOW,
    ),
    "connections": Parameter(
        "Connections",
        "How many connections to Pub/Sub each worker process has, 1 to 8. A hedge needs a second one to be of "
        "use when a connection stalls.",
        WHOLE,
        _FLOW,
    ),
    "pubsub_endpoint": Parameter(
        "Pub/Sub endpoint",
        "A Pub/Sub endpoint to publish to, such as europe-west1-pubsub.googleapis.com:443. If it is left "
        "empty, the global one is used.",
        ENDPOINT,
        _TARGET,
    ),
    "id_label": Parameter(
        "Attribute for an id",
        "Attribute that gets an id which is equal on all copies of a message, so that subscribers can remove "
        "duplicates. If it is left empty, messages get none.",
        TEXT,
        _TARGET,
    ),
    "dead_letter_topic": Parameter(
        "Dead-letter topic",
        "Where messages go that cannot be published, with the reason, as projects/PROJECT/topics/TOPIC. If it "
        "is left empty, such a message fails its bundle.",
        TOPIC,
        _TARGET,
    ),
}
