"""What a finished pipeline did, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apache_beam.runners.runner import PipelineResult


def summary(result: PipelineResult) -> str:
    """Sums up a pipeline from its counters.

    Args:
        result: A pipeline that has ended.

    Returns:
        One line. Counters that the runner has not reported count as 0.
    """
    counters = {
        counter.key.metric.name: counter.result or 0 for counter in result.metrics().query()["counters"]
    }

    def count(name: str) -> str:
        return f"{counters.get(name, 0):,}"

    return (
        f"{result.state}: {count('messages_published')} messages published in "
        f"{count('batches_published')} batches, {count('publish_attempts')} requests. "
        f"Hedges: {count('hedges_sent')} sent, {count('hedges_won')} won, "
        f"{count('hedges_throttled')} throttled. Empty lines skipped: {count('empty_lines_skipped')}."
    )
