"""One run: a fresh server with a long tail, the pipeline, and what both of them say afterwards."""

from __future__ import annotations

import textwrap
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beam_hedge.testing import LocalPubSub
from demo.delivery import compare
from demo.program import run_program
from demo.progress import Progress
from demo.result import Result, read_outcomes

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from beam_hedge.testing import LatencyProfile

TOPIC = "projects/demo-project/topics/airports"
MESSAGES_PER_BATCH = 5
BATCHES_IN_FLIGHT = 4


@dataclass(frozen=True)
class Setup:
    """What both runs have in common.

    Attributes:
        data: The file to publish.
        lines: Its lines.
        profile: The server's latencies.
        seed: Their seed: the n-th request of each run draws the same latency.
        hedge_delay: In seconds.
        folder: Where files go.
    """

    data: Path
    lines: list[bytes]
    profile: LatencyProfile
    seed: int
    hedge_delay: float
    folder: Path

    def arguments(self, name: str, *, hedging: bool) -> list[str]:
        """Returns what follows `python` to start the pipeline."""
        return [
            "-m",
            "pipelines.text_to_pubsub",
            f"--input={self.data}",
            f"--topic={TOPIC}",
            f"--enable_hedging={str(hedging).lower()}",
            f"--hedge_delay={self.hedge_delay}",
            f"--batch_max_messages={MESSAGES_PER_BATCH}",
            # Batches are full before they are sent, also while flow control holds them back.
            "--batch_max_latency=1m",
            f"--flow_control_message_limit={MESSAGES_PER_BATCH * BATCHES_IN_FLIGHT}",
            # Should the server die, the program ends soon after.
            "--total_timeout=15s",
            f"--outcomes={self.folder / f'{name}.jsonl'}",
            # The DirectRunner's engine, by its own name: "DirectRunner" first tries to download another one.
            "--runner=FnApiRunner",
        ]

    def run(self, name: str, *, hedging: bool, stop: threading.Event) -> Result:
        """Publishes the data once.

        Args:
            name: The first part of the names of this run's files.
            hedging: Whether late batches are hedged.
            stop: Ends the run when it is set.

        Returns:
            What the run came to.

        Raises:
            ProgramFailedError: The pipeline failed.
            StoppedError: `stop` was set.
        """
        arguments = self.arguments(name, hedging=hedging)
        print(_command(arguments))
        with LocalPubSub(profile=self.profile, seed=self.seed) as server:
            server.create_topic(TOPIC)
            progress = Progress(len(self.lines))

            def tick(*, last: bool = False) -> None:
                progress.show(server.ledger(TOPIC), last=last)

            start = time.monotonic()
            said = run_program(
                arguments,
                self.folder / f"{name}.log",
                environment={"PUBSUB_EMULATOR_HOST": server.endpoint},
                stop=stop,
                tick=tick,
            )
            wall_s = time.monotonic() - start
            tick(last=True)
            ledger = server.wait_for(lambda books: books.open == 0, topic=TOPIC)
            requests = server.requests
            stored = [message.data for message in server.messages(TOPIC)]
        print(f"   {said}")
        return Result(
            outcomes=read_outcomes(self.folder / f"{name}.jsonl"),
            requests=ledger.requests,
            publishing_s=max(request.ended or 0.0 for request in requests) - requests[0].arrival,
            wall_s=wall_s,
            delivery=compare(self.lines, stored),
        )


def _command(arguments: list[str]) -> str:
    lines = textwrap.wrap(" ".join(["python", *arguments]), 96, break_long_words=False, break_on_hyphens=False)
    return "   $ " + " \\\n       ".join(lines)
