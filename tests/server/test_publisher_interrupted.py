"""Ctrl-C inside `publish()`, wherever Python may notice it there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from beam_hedge import HedgingPublisher
from tests.server.serving import PATIENCE, TOPIC, eventually, serving

if TYPE_CHECKING:
    from types import FrameType

_LIBRARY = "beam_hedge."
_IDLE = "<FlowController 0 batches, 0 messages, 0 B out>"


class _Interrupt:
    """Raises KeyboardInterrupt when the library has begun or ended so many of its calls on this thread.

    Those, and calls into C, are where Python looks for signals.
    """

    def __init__(self, after: int) -> None:
        self.left = after
        self._before = sys.gettrace()

    def __enter__(self) -> None:
        sys.settrace(self._trace)

    def __exit__(self, *_error: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if not frame.f_globals["__name__"].startswith(_LIBRARY):
            return None
        frame.f_trace_lines = False
        if event in ("call", "return"):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self._trace


def test_ctrl_c_anywhere_in_publish_loses_no_permits_and_hinders_nothing() -> None:
    """A program that goes on after Ctrl-C can publish, and close() has nothing to wait for."""
    interrupted = 0
    with serving() as server, HedgingPublisher(TOPIC, None) as publisher:
        while True:
            step = _Interrupt(interrupted + 1)
            try:
                with step:
                    publisher.publish([b"perhaps"])
            except KeyboardInterrupt:
                interrupted += 1
            else:
                break
            assert publisher.publish([b"%d" % interrupted]).result(PATIENCE).attempts == 1
            eventually(lambda: repr(publisher._flow) == _IDLE)
        stored = [message.data for message in server.messages(TOPIC)]
    assert interrupted > 20, "this test interrupts nothing any more"
    assert [data for data in stored if data != b"perhaps"] == [b"%d" % n for n in range(1, interrupted + 1)]
