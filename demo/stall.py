"""A network that stalls: one TCP connection freezes again and again while messages are published."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beam_hedge import HedgingPublisher, HedgingSettings
from beam_hedge.testing import LocalPubSub
from demo.stop import StoppedError

if TYPE_CHECKING:
    import concurrent.futures
    import threading
    from collections.abc import Sequence

    from beam_hedge import PublishOutcome

TOPIC = "projects/demo-project/topics/airports"
FREEZE_S = 1.0
EVERY_S = 3.0
# The connection is known to work, and the budget for hedges is earned, before the first freeze.
FIRST_FREEZE_S = 1.5
RATE = 100


@dataclass(frozen=True)
class StallRun:
    """What became of messages that were published at a steady rate.

    Attributes:
        points: When each message was due, in seconds from the start, and its latency from then in ms.
        requests: Publish requests that were sent: the originals, hedges and retries.
        freezes: When the connection froze, in seconds from the start.
        lost: Messages that the topic does not hold.
    """

    points: Sequence[tuple[float, float]]
    requests: int
    freezes: Sequence[float]
    lost: int

    @property
    def latencies_ms(self) -> list[float]:
        """All latencies, the shortest first."""
        return sorted(latency for _, latency in self.points)


def run_stall(lines: Sequence[bytes], connections: int, hedge_delay: float, stop: threading.Event) -> StallRun:
    """Publishes lines, one a request, through a relay that freezes one connection 1 s every 3 s.

    Args:
        lines: What to publish, 100 a second. No two are equal.
        connections: How many connections the publisher has.
        hedge_delay: In seconds.
        stop: Ends the run when it is set.

    Raises:
        StoppedError: `stop` was set.
    """
    settings = HedgingSettings(hedge_delay=hedge_delay)
    points: list[tuple[float, float]] = []
    freezes: list[float] = []
    futures: list[concurrent.futures.Future[PublishOutcome]] = []
    with LocalPubSub(relay=True) as server, server.environment():
        server.create_topic(TOPIC)
        with HedgingPublisher(TOPIC, settings, connections=connections) as publisher:
            publisher.publish([b"opens the connections"]).result()
            frozen = server.connections()[0].client_port
            start = time.monotonic()
            for number, line in enumerate(lines):
                due = number / RATE
                if stop.wait(max(0.0, start + due - time.monotonic())):
                    raise StoppedError
                if due >= FIRST_FREEZE_S + len(freezes) * EVERY_S:
                    freezes.append(due)
                    server.freeze(frozen, FREEZE_S)

                def done(_future: object, due: float = due) -> None:
                    points.append((due, 1000 * (time.monotonic() - start - due)))

                futures.append(publisher.publish([line]))
                futures[-1].add_done_callback(done)
            outcomes = [future.result() for future in futures]
        stored = {message.data for message in server.messages(TOPIC)}
    return StallRun(
        points=sorted(points),
        requests=sum(outcome.attempts for outcome in outcomes),
        freezes=freezes,
        lost=sum(line not in stored for line in lines),
    )
