"""A worker's process that does as it is told: `python -m tests.faults.program_worker`.

It reads commands, a line each, and answers each with a line that begins with what became of it:

    publish NAME...   a whole bundle: "published", or the name of the error, and the names
    begin NAME...     the first part of a bundle, which stays open: "begun"
    finish            the rest of it: as for publish
    fork NAME...      a bundle in a child of `fork`, as for publish; then "child" and its exit status
    exit-on-sigterm   has SIGTERM raise SystemExit, as programs do that want to end in order: "ready"

It ends when there are no more commands.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from tests.beam.pipelines import batches_of, make_fn
from tests.server.serving import UNHURRIED

if TYPE_CHECKING:
    from beam_hedge.write_fn import WriteFn


class Worker:
    """One DoFn, and the bundle that it is at."""

    def __init__(self) -> None:
        self._write_fn: WriteFn = make_fn(UNHURRIED, batch_settings=batches_of(1))
        self._write_fn.setup()
        self._names: list[str] = []

    def obey(self, command: str, names: list[str]) -> str:
        """Carries out a command, and returns the answer."""
        if command == "exit-on-sigterm":
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
            return "ready"
        if command == "fork":
            return self._fork(names)
        if command != "finish":
            self._names = names
        return " ".join([self._run(command), *(() if command == "begin" else self._names)])

    def _run(self, command: str) -> str:
        try:
            if command != "finish":
                self._write_fn.start_bundle()
                for name in self._names:
                    self._write_fn.process(name)
            if command == "begin":
                return "begun"
            self._write_fn.finish_bundle()
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the test judges
            return type(error).__name__
        return "published"

    def _fork(self, names: list[str]) -> str:
        child = os.fork()
        if child == 0:
            # A child that hangs is ended.
            signal.alarm(10)
            say(self.obey("publish", names))
            os._exit(0)
        return f"child {os.waitpid(child, 0)[1]}"


def say(answer: str) -> None:
    """Answers, at once."""
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    worker = Worker()
    for line in iter(sys.stdin.readline, ""):
        word, *rest = line.split()
        say(worker.obey(word, rest))
