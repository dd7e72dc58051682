"""A process that starts the library and prints the milliseconds of each step as JSON.

Started by `benchmarks.start_up`. It imports nothing but the standard library before it measures.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any

_MS = 1000
_MODULES = {"beam": "apache_beam", "hedge": "beam_hedge"}


def start(topic: str) -> dict[str, float]:
    """Returns the milliseconds of each step."""
    steps: dict[str, float] = {}
    at = time.perf_counter()
    for step, module in _MODULES.items():
        import_module(module)
        before, at = at, time.perf_counter()
        steps[step] = _MS * (at - before)
    sink: Any = sys.modules["beam_hedge"].WriteToPubSubHedged(topic)
    fn = sink._write_fn()  # noqa: SLF001 - what a runner is given
    begin = time.perf_counter()
    fn.setup()
    ready = time.perf_counter()
    fn.start_bundle()
    fn.process(b"x" * 1024)
    fn.finish_bundle()
    steps["setup"], steps["first"] = _MS * (ready - begin), _MS * (time.perf_counter() - ready)
    fn.teardown()
    return steps


if __name__ == "__main__":
    print(json.dumps(start(sys.argv[1])))
