"""What the pipelines count, beside the sink: all that is skipped, dropped or changed on the way."""

from __future__ import annotations

import threading
from collections import Counter

from apache_beam.metrics import Metrics

NAMESPACE = "pipelines"

# Counters by name, and how a person is told of them.
TEXT_COUNTERS = {
    "empty_lines_skipped": "Empty lines skipped",
    "byte_order_marks_removed": "Byte-order marks removed",
    "attribute_fields_missing": "Attribute fields missing",
    "dead_letters": "Dead letters",
}
RELAY_COUNTERS = {
    "messages_read": "Messages read",
    "messages_filtered_out": "Filtered out",
    "empty_messages_dropped": "Empty messages dropped",
    "dead_letters": "Dead letters",
    "ordering_keys_cleared": "Ordering keys cleared",
    "reserved_attributes_dropped": "Reserved attributes dropped",
    "attributes_replaced": "Attributes replaced",
}


class StepCounter:
    """A counter of a step: Beam's, and the process's own tally.

    Args:
        name: One of the names above.
    """

    def __init__(self, name: str) -> None:
        assert name in TEXT_COUNTERS or name in RELAY_COUNTERS, name
        self._name = name
        self._beam = Metrics.counter(NAMESPACE, name)

    def inc(self, number: int = 1) -> None:
        """Counts, on the thread of a bundle."""
        if number:
            self._beam.inc(number)
            TALLY.add({self._name: number})


class Tally:
    """Counts of this process.

    Beam's direct runner, when it runs a stream, keeps of each step only what its first bundle counted. It
    runs all steps in one process, so that there these counts are complete.
    """

    def __init__(self) -> None:
        # Held while numbers are added or copied, by bundles' threads and the main one.
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, counts: dict[str, int]) -> None:
        """Adds numbers to counts."""
        with self._lock:
            self._counts.update(counts)

    def counts(self) -> Counter[str]:
        """Returns all counts by name."""
        with self._lock:
            return Counter(self._counts)

    def clear(self) -> None:
        """Starts again, for another pipeline of this process."""
        with self._lock:
            self._counts.clear()


TALLY = Tally()
