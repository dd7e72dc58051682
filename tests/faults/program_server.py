"""A service whose memory outlives it: `python -m tests.faults.program_server PORT FILE ANSWERS`.

An embedded Pub/Sub that adds each message to a file before it answers, so that what it has taken is known even
after a `kill -9`. It answers as many calls as it is told, and leaves the others without an answer.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from beam_hedge.testing import NEVER, LocalPubSub
from tests.server.serving import TOPIC

if TYPE_CHECKING:
    from beam_hedge.testing import Reply, RequestRecord


class Storing:
    """A script that keeps what arrives.

    Args:
        path: The file: a line for each message, with the number of the hedge that brought it, or 0.
        answers: How many calls are answered.
    """

    def __init__(self, path: str, answers: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._answers = answers

    def __call__(self, record: RequestRecord) -> Reply | None:
        """Keeps a call's messages."""
        lines = [b"%d %s\n" % (record.hedged_attempt_count or 0, each.data) for each in record.messages]
        # One write: no handler's lines are mixed with another's, and a kill leaves no half of a line.
        os.write(self._file, b"".join(lines))
        return None if record.number <= self._answers else NEVER


def serve(port: int, path: str, answers: int) -> None:
    """Serves until a signal ends the process."""
    with LocalPubSub(port, script=Storing(path, answers)) as server:
        server.create_topic(TOPIC)
        sys.stdout.write(f"{server.endpoint}\n")
        sys.stdout.flush()
        signal.pause()


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
