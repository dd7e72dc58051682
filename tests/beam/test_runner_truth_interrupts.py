"""Ctrl-C wherever Python lets it in: where a function begins, and after a call of one that is not Python's."""

from __future__ import annotations

import gc
import itertools
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import beam_hedge
from beam_hedge.testing import NEVER
from tests.beam.pipelines import batches_of, make_fn, run_bundle
from tests.server.serving import PATIENCE, TOPIC, UNHURRIED, eventually, serving

if TYPE_CHECKING:
    from typing_extensions import Self

    from beam_hedge.testing import LocalPubSub, Reply
    from beam_hedge.write_fn import WriteFn

LIBRARY = str(Path(beam_hedge.__file__).parent)
ELEMENTS = [b"1", b"2"]


class Interrupt:
    """Raises KeyboardInterrupt at one of the places where a signal could, in the library's code of this thread.

    Args:
        place: Which of them, counted from 1.

    Attributes:
        raised: Whether it came so far.
    """

    def __init__(self, place: int) -> None:
        self.raised = False
        self._left = place

    def __enter__(self) -> Self:
        # What the collector finds at a time of its own would be places, too.
        gc.disable()
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        gc.enable()

    def _see(self, frame: Any, event: str, _: object) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(LIBRARY):
            self._left -= 1
            if self._left == 0:
                self.raised = True
                raise KeyboardInterrupt


def interrupted(write_fn: WriteFn, place: int, *, finish: bool) -> bool:
    """Runs a bundle, or its part before `finish_bundle`, and returns whether an interrupt ended it."""
    with Interrupt(place) as interrupt:
        try:
            write_fn.start_bundle()
            for element in ELEMENTS:
                write_fn.process(element)
            if finish:
                write_fn.finish_bundle()
        except KeyboardInterrupt:
            pass
    return interrupt.raised


def interrupt_everywhere(server: LocalPubSub, *, finish: bool) -> int:
    """Interrupts a bundle at one place after the other; fails if something is left out.

    Returns:
        How many places there were.
    """
    for place in itertools.count(1):
        write_fn = make_fn(UNHURRIED, batch_settings=batches_of(1))
        write_fn.setup()
        flow = write_fn._lease.publisher._flow
        raised = interrupted(write_fn, place, finish=finish)
        write_fn.teardown()
        eventually(lambda flow=flow: flow.batches == 0)  # type: ignore[misc]  # mypy cannot infer its type
        server.wait_for(lambda ledger: not ledger.open, timeout=PATIENCE)
        if not raised:
            return place - 1
    raise AssertionError


PARTS = pytest.mark.parametrize(("script", "finish"), [(NEVER, False), (None, True)], ids=["process", "whole"])


@PARTS
def test_an_interrupt_at_any_place_leaves_nothing_out(
    script: Reply | None, finish: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it no call is open and no permit is held, and the next bundle is published."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    with serving(script, store="answer") as server:
        assert interrupt_everywhere(server, finish=finish) > 50
        server.script = None
        before = Counter(message.data for message in server.messages(TOPIC))
        write_fn = make_fn(UNHURRIED, batch_settings=batches_of(1))
        write_fn.setup()
        run_bundle(write_fn, ELEMENTS)
        write_fn.teardown()
        stored = Counter(message.data for message in server.messages(TOPIC))
    assert stored - before == Counter(ELEMENTS)


@PARTS
def test_an_interrupt_at_any_place_is_quiet(
    script: Reply | None, finish: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who presses Ctrl-C sees that and nothing else: no exception is ignored on the way."""
    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    with serving(script, store="answer") as server:
        interrupt_everywhere(server, finish=finish)
    assert not [each.exc_value for each in complaints]
