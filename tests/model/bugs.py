"""Mistakes that somebody could make in the library, as data: the model-based test has to find all."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_LIBRARY = Path(__file__).parents[2] / "beam_hedge"


class Bug(NamedTuple):
    """One mistake.

    Attributes:
        harm: What a user would suffer.
        module: The module that it is in.
        right: The library's text; it is there exactly once.
        wrong: What stands in its place.
    """

    harm: str
    module: str
    right: str
    wrong: str

    @property
    def path(self) -> Path:
        """The module's file."""
        return _LIBRARY / f"{self.module}.py"

    def planted(self) -> str:
        """Returns the module's text with the mistake."""
        text = self.path.read_text("utf-8")
        found = text.count(self.right)
        assert found == 1, f"{self.path.name} holds {found} times: {self.right}"
        return text.replace(self.right, self.wrong)


BUGS = (
    Bug(
        "hedges are sent without a token",
        "attempts",
        "        if not self._policy.bucket.try_acquire():\n",
        "        if not self._policy.bucket.try_acquire() and self._hedges:\n",
    ),
    Bug(
        "a hedge waits behind what it hedges",
        "attempts",
        "        avoid = [attempt.connection for attempt in self._live]\n",
        "        avoid = [attempt.connection for attempt in self._live if attempt.hedge]\n",
    ),
    Bug(
        "a hedge's error fails a batch whose original is alive",
        "attempts",
        "        if attempt.hedge:\n            self._hedges_failed += 1\n        else:\n",
        "        if attempt.hedge:\n            self._hedges_failed += 1\n"
        "        if not attempt.hedge or answer.status is grpc.StatusCode.INVALID_ARGUMENT:\n",
    ),
    Bug(
        "losers go on publishing after the outcome",
        "attempts",
        "            for attempt in self._live:\n                attempt.call.cancel()\n",
        "            for attempt in self._live[1:]:\n                attempt.call.cancel()\n",
    ),
    Bug(
        "flow control waits for losers that do not end",
        "attempts",
        "CANCELLATION_GRACE = 1.0",
        "CANCELLATION_GRACE = 1.2",
    ),
    Bug(
        "each answer of a batch puts tokens into the bucket",
        "attempts",
        "        if self._batch is None:\n            if not self._live:\n",
        "        if self._batch is None:\n            if not call.cancelled():\n"
        "                self._policy.bucket.refill()\n            if not self._live:\n",
    ),
    Bug(
        "a batch with a loser keeps its payload",
        "request",
        "        self._members, self._wanted = (), {}\n",
        "        self._wanted = {}\n",
    ),
    Bug(
        "timers of finished batches pile up",
        "attempts",
        "        for timer in self._timers.values():\n            timer.cancel()\n"
        "        self._timers.clear()\n",
        "        self._timers.clear()\n",
    ),
    Bug(
        "a hedge is sent although the answer is there",
        "attempts",
        "_TURNS_TO_SEE_ANSWERS = 5",
        "_TURNS_TO_SEE_ANSWERS = 0",
    ),
    Bug(
        "a retry puts off the next hedge",
        "attempts",
        "        self._send_original(now, avoid=(failed_connection,))\n",
        "        self._send_original(now, avoid=(failed_connection,))\n"
        "        self._set_hedge_timer(now, self._hedge_due)\n",
    ),
    Bug(
        "retries go on after the total timeout",
        "attempts",
        "            if due < self.deadline:\n",
        "            if due < self.deadline or self._retries < 2:\n",
    ),
    Bug(
        "an answer with the wrong number of ids counts as published",
        "attempts",
        "len(answer) != self._messages:",
        "len(answer) < self._messages:",
    ),
    Bug(
        "a saved-up budget has no limit",
        "token_bucket",
        "min(self.milli_tokens + self._refill, self._capacity)",
        "self.milli_tokens + self._refill",
    ),
    Bug(
        "a part of a token buys a hedge",
        "token_bucket",
        "        if self.milli_tokens < TOKEN:\n",
        "        if self.milli_tokens < TOKEN // 4:\n",
    ),
    Bug(
        "load is measured wrongly once requests have been cancelled",
        "connection",
        "        self.out -= 1\n        self._unpassed.pop(request, None)\n",
        "        self.out -= expired\n        self._unpassed.pop(request, None)\n",
    ),
    Bug(
        "a new publisher begins with an empty bucket",
        "lease",
        "self._make_publisher(shared.config, shared.bucket)",
        "self._make_publisher(shared.config, make_token_bucket(shared.config.settings))",
    ),
    Bug(
        "connections close under a DoFn that came back within the linger",
        "lease",
        "        if shared.holders or shared.linger",
        "        if shared.linger",
    ),
    Bug(
        "an early linger closes connections that were used since",
        "lease",
        " or shared.linger is not this_linger or",
        " or",
    ),
    Bug(
        "a batch cancelled in the queue keeps its permits",
        "callers",
        "        self._flow.release(accepted.permits)\n",
        "",
    ),
    Bug(
        "one caller's cancellation ends the others' batches",
        "request",
        "            if not self._wanted:\n                self._attempts.cancel()\n",
        "            self._attempts.cancel()\n",
    ),
    Bug(
        "permits are given back while a split request's parts are out",
        "request",
        "            self._permits.remove(each.permits)\n",
        "",
    ),
    Bug(
        "a split request's parts start their time anew",
        "request",
        "deadline=self._attempts.deadline, ",
        "",
    ),
    Bug(
        "callers that share a request get each other's ids",
        "shared_request",
        "        start += each.batch.messages\n",
        "        start += 1\n",
    ),
    Bug(
        "a retry of an impatient client adds to the trouble",
        "retry",
        "    return delay * (0.5 + 0.5 * random())\n",
        "    return delay * random()\n",
    ),
    Bug(
        "a request that is too large is sent again and again",
        "retry",
        "    if status is grpc.StatusCode.RESOURCE_EXHAUSTED and _SIZE_ERROR in details:\n"
        "        return False\n",
        "",
    ),
    Bug(
        "callers wait for ever when their publisher closes",
        "publisher",
        "        self._closed = True\n        self._flow.close(PublisherClosedError)\n"
        "        self._futures.cancel_all()\n",
        "        self._closed = True\n        self._flow.close(PublisherClosedError)\n",
    ),
    Bug(
        "callers wait for ever when the engine has died",
        "publisher",
        "        self._futures.fail_all()\n",
        "",
    ),
    Bug(
        "flow control lets too much out",
        "flow_control",
        "                self._messages -= permits.messages\n",
        "                self._messages -= permits.messages + (permits.messages > 1)\n",
    ),
)
