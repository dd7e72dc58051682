"""What publishing costs by the list prices' model: volume for Pub/Sub, time of threads for workers.

Pub/Sub charges for the volume that is published, and for the volume that each subscription is delivered: data,
attributes, 20 bytes of timestamp and the message id, at least 1,000 bytes a request
(https://cloud.google.com/pubsub/pricing). Workers are charged by the time of their processors
(https://cloud.google.com/dataflow/pricing), each of which a runner gives several threads that can wait.
"""

from __future__ import annotations

from dataclasses import dataclass

LEAST_REQUEST = 1000
# A timestamp, and an id of 16 digits.
_PER_MESSAGE = 20 + 16
_TIB = 2**40
_HOUR = 3600


@dataclass(frozen=True)
class Prices:
    """What things cost.

    Attributes:
        tib: Dollars for each TiB of throughput.
        vcpu_hour: Dollars for each hour of a worker's processor.
        threads: Threads that share one; a thread that waits for a bundle takes up its part.
        subscriptions: How many times each stored copy is delivered.
    """

    tib: float
    vcpu_hour: float
    threads: int
    subscriptions: int

    def publishing(self, requests: float, messages: float, size: int) -> float:
        """Returns the dollars for publish requests that all hold as many messages.

        Args:
            requests: How many.
            messages: Of each.
            size: Bytes of data and attributes of a message.
        """
        return requests * billed(messages, size) / _TIB * self.tib

    def delivering(self, messages: float, size: int) -> float:
        """Returns the dollars for delivering messages, in responses larger than the least that is charged."""
        return self.subscriptions * messages * (size + _PER_MESSAGE) / _TIB * self.tib

    def waiting(self, seconds: float) -> float:
        """Returns the dollars for the time in which threads of workers wait."""
        return seconds / _HOUR / self.threads * self.vcpu_hour


def billed(messages: float, size: int) -> float:
    """Returns the bytes that a publish request is charged for.

    Args:
        messages: How many it holds.
        size: Bytes of data and attributes of each.
    """
    return max(LEAST_REQUEST, messages * (size + _PER_MESSAGE))
