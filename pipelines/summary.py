"""What a pipeline has done, in one line."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pipelines.dead_letter_topic import STEP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apache_beam.runners.runner import PipelineResult


def summary(state: str, counters: Counter[str], labels: Mapping[str, str]) -> str:
    """Sums up a pipeline.

    Args:
        state: How it ended.
        counters: Its counters by name.
        labels: Further counters to tell of, beside those of the sink, and how they are called.

    Returns:
        One line.
    """

    def count(name: str) -> str:
        return f"{counters[name]:,}"

    others = " ".join(f"{label}: {count(name)}." for name, label in labels.items())
    return (
        f"{state}: {count('messages_published')} messages published in "
        f"{count('batches_published')} batches, {count('publish_attempts')} requests. "
        f"Hedges: {count('hedges_sent')} sent, {count('hedges_won')} won, "
        f"{count('hedges_throttled')} throttled. {others}"
    )


def counts(result: PipelineResult) -> Counter[str]:
    """Returns what a pipeline has counted, by name; what the sink for dead letters counted is left out.

    Args:
        result: A pipeline that has ended. Counters that the runner has not reported are 0.
    """
    found: Counter[str] = Counter()
    for each in result.metrics().query()["counters"]:
        name = each.key.metric.name
        if not each.key.step.startswith(STEP) or name == "dead_letters":
            found[name] += each.result or 0
    return found
