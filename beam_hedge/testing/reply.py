"""Scripted server behaviour: what becomes of one publish call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc

from beam_hedge.testing.record import RequestRecord

if TYPE_CHECKING:
    import threading


@dataclass(frozen=True)
class Reply:
    """What the server does with one publish call.

    Args:
        status: The status of the answer; default OK.
        details: The text of an error status.
        delay: Seconds from arrival to answer, 0 or more; default: as the latency profile draws.
        until: The answer waits until this event is set, and for `delay` as well.
        never: There is no answer; the call ends when the client, its deadline or its connection ends it.
        cut: The connection that brought the call is cut at once; needs `LocalPubSub(relay=True)`.
        ids: How many message ids the answer holds, for wrong answers; default: one for each message.
        stored: Whether the messages are stored. Default: those of a call with status OK are, at arrival or at
            answer as the server is set (so a call that is never answered stores at arrival only), and those
            of any other call are not.

    Raises:
        TypeError: If the status is none of gRPC's.
        ValueError: If the settings contradict each other or are out of range.

    Example:
        >>> Reply(status=grpc.StatusCode.UNAVAILABLE, delay=0.2).never
        False
    """

    status: Any = grpc.StatusCode.OK
    details: str = "scripted"
    delay: float | None = None
    until: threading.Event | None = None
    never: bool = False
    cut: bool = False
    ids: int | None = None
    stored: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.status, grpc.StatusCode):
            raise TypeError(f"status must be a grpc.StatusCode, got {self.status!r}")
        if self.delay is not None and not self.delay >= 0:
            raise ValueError(f"delay must be 0 or more seconds, got {self.delay!r}")
        if self.ids is not None and not self.ids >= 0:
            raise ValueError(f"ids must be 0 or more, got {self.ids!r}")
        fails = self.status is not grpc.StatusCode.OK
        if self.never and self.cut:
            raise ValueError("never and cut exclude each other")
        if self.unanswered and (fails or self.until is not None or self.delay is not None):
            raise ValueError("a call that is never answered has no status, delay or until")
        if self.ids is not None and (fails or self.unanswered):
            raise ValueError("ids needs an answer with status OK")

    @property
    def unanswered(self) -> bool:
        """Whether the call gets no answer at all."""
        return self.never or self.cut


OK = Reply()
"""The usual answer, after the latency that the profile draws."""

NEVER = Reply(never=True)
"""No answer."""

CUT = Reply(cut=True)
"""The connection is cut."""

Script: TypeAlias = Reply | Mapping[int, Reply] | Callable[[RequestRecord], Reply | None]
"""One reply for all calls, replies by call number (from 1), or a function of the call. No reply means `OK`."""


def check_script(script: Script | None, *, can_cut: bool) -> None:
    """Checks what can be known of a script before it runs.

    Args:
        script: The script.
        can_cut: Whether the server has a relay.

    Raises:
        TypeError: If it is no script.
        ValueError: If a reply needs the relay and there is none.
    """
    replies: list[object] = []
    if isinstance(script, Mapping):
        replies = list(script.values())
    elif isinstance(script, Reply):
        replies = [script]
    elif script is not None and not callable(script):
        raise TypeError(
            f"a script is a Reply, a mapping of call numbers to replies or a function, got {script!r}"
        )
    for reply in replies:
        check_reply(reply, can_cut=can_cut)


def check_reply(reply: object, *, can_cut: bool) -> Reply:
    """Returns the reply, or raises as `check_script()` does."""
    if not isinstance(reply, Reply):
        raise TypeError(f"a script answers with a Reply, got {reply!r}")
    if reply.cut and not can_cut:
        raise ValueError("Reply(cut=True) needs LocalPubSub(relay=True): only the relay can cut a connection")
    return reply


def reply_to(script: Script | None, number: int, record: RequestRecord | None) -> object:
    """Asks the script about one call.

    Args:
        script: The script, or None.
        number: The number of the call.
        record: The call; needed for a function only.

    Returns:
        What the script says, unchecked; `OK` if it says nothing.
    """
    reply: object
    if script is None or isinstance(script, Reply):
        reply = script
    elif isinstance(script, Mapping):
        reply = script.get(number)
    else:
        assert record is not None
        reply = script(record)
    return OK if reply is None else reply
