"""What users may catch.

Every error of this package is a `BeamHedgeError`. Texts name what failed and what to do about it; they never
hold a message's payload, and what a server said is cut to `MAX_DETAILS_BYTES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DETAILS_BYTES = 1024

_WHAT_TO_DO = {
    grpc.StatusCode.NOT_FOUND: "Create the topic, or correct its name and project.",
    grpc.StatusCode.PERMISSION_DENIED: "Grant the worker's account roles/pubsub.publisher on the topic.",
    grpc.StatusCode.UNAUTHENTICATED: "Check the credentials of the worker's account.",
    grpc.StatusCode.INVALID_ARGUMENT: "A message of the batch breaks a rule of the service: correct it.",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "Ask for more quota, or lower batch_settings.max_bytes.",
    grpc.StatusCode.INTERNAL: "The messages may be stored already: publishing them again can duplicate them.",
}
_RETRIED_IN_VAIN = "The service or the network did not recover within the retry settings."


class BeamHedgeError(Exception):
    """The base of all errors that this package defines."""


class InvalidSettingError(BeamHedgeError, ValueError):
    """A setting is outside what is allowed. The text names the field, the value and what is allowed."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        # The whole text, because Beam adds to the first argument where in a pipeline it happened.
        super().__init__(f"{field} must be {allowed}, got {shown(value, 200)}")
        self.field = field
        self.value = value
        self.allowed = allowed

    def __reduce__(self) -> tuple[type[InvalidSettingError], tuple[str, object, str]]:
        return type(self), (self.field, self.value, self.allowed)


class InvalidMessageError(BeamHedgeError, ValueError):
    """A message breaks one of Pub/Sub's limits, found before anything was sent."""


class PublisherClosedError(BeamHedgeError, RuntimeError):
    """`publish()` was called on a publisher that is closed."""

    def __init__(self) -> None:
        super().__init__("this publisher is closed; make a new one")


class WrongThreadError(BeamHedgeError, RuntimeError):
    """A call that would wait was made on the engine's own thread, which must never wait."""


class EngineDiedError(BeamHedgeError, RuntimeError):
    """The engine's thread ended while batches were out. They may or may not have been stored."""

    def __init__(self) -> None:
        super().__init__(
            "the engine's thread has ended, so what became of the batches that were out is unknown: they may "
            "or may not be stored. Publish them again with a new publisher."
        )


class ForkedProcessError(BeamHedgeError, RuntimeError):
    """The process was forked while the engine was running; gRPC does not survive that in the child."""

    def __init__(self) -> None:
        super().__init__(
            "this process was forked after beam_hedge had started its engine. Start workers with the 'spawn' "
            "or 'forkserver' method, or fork before the first publisher is made."
        )


class PublishError(BeamHedgeError):
    """A batch was not published.

    Attributes:
        topic: The topic of the batch.
        status: The gRPC status that ended it.
        details: What the server (or gRPC) said, at most 1,024 bytes.
        messages: How many messages the batch held.
        request_bytes: The size of the request, in bytes.
        attempts: 1 + retries + hedges.
        retries: Further tries of the original.
        hedges: Hedges sent.
        hedges_failed: Hedges that ended in an error of their own.
        hedges_throttled: 1 if a due hedge found no token, else 0.
        attempts_cancelled: Attempts that were still out when the batch ended.
        refusals: The gRPC statuses of the attempts that ended without success, in their order.
        shared: Whether the batch was in one request with a batch of another thread, whose error tells of the
            attempts; this one then tells of one attempt, and no hedges.
    """

    def __init__(
        self,
        topic: str,
        status: grpc.StatusCode,
        details: str,
        *,
        messages: int,
        request_bytes: int,
        attempts: int,
        retries: int,
        hedges: int,
        hedges_failed: int,
        hedges_throttled: int,
        attempts_cancelled: int,
        refusals: tuple[grpc.StatusCode, ...] = (),
        shared: bool = False,
    ) -> None:
        super().__init__(topic, status)
        self.topic = topic
        self.status = status
        self.details = bounded(details, MAX_DETAILS_BYTES)
        self.messages = messages
        self.request_bytes = request_bytes
        self.attempts = attempts
        self.retries = retries
        self.hedges = hedges
        self.hedges_failed = hedges_failed
        self.hedges_throttled = hedges_throttled
        self.attempts_cancelled = attempts_cancelled
        self.refusals = refusals
        self.shared = shared

    def replace(self, **fields: Any) -> PublishError:
        """Returns a copy with some fields changed, as `dataclasses.replace` does for an outcome."""
        return PublishError(**{**self._fields(), **fields})

    def __str__(self) -> str:
        return (
            f"a batch of {_counted(self.messages, 'message')} ({self.request_bytes} B) was not published to "
            f"{self.topic}: {self.status.name} after {_counted(self.attempts, 'attempt')}. "
            f"{_WHAT_TO_DO.get(self.status, _RETRIED_IN_VAIN)} The server said: {self.details or 'nothing'}"
        )

    def __reduce__(self) -> tuple[Callable[..., PublishError], tuple[dict[str, Any]]]:
        return _rebuild_publish_error, (self._fields(),)

    def _fields(self) -> dict[str, Any]:
        # What add_note() leaves is no argument.
        return {name: value for name, value in self.__dict__.items() if not name.startswith("__")}


def _rebuild_publish_error(fields: dict[str, Any]) -> PublishError:
    return PublishError(**fields)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shown(value: object, limit: int) -> str:
    """Returns a value's `repr()`, cut to at most `limit` bytes, or its type if it has none."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a class's own code; Python, too, refuses integers of thousands of digits
        text = f"a {type(value).__name__} that cannot be shown"
    return bounded(text, limit)


def bounded(text: str, limit: int) -> str:
    """Cuts a text to at most `limit` bytes of valid UTF-8; surrogates, which UTF-8 cannot hold, become '?'."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return encoded.decode("utf-8")
    mark = "..."
    return encoded[: limit - len(mark)].decode("utf-8", "ignore") + mark
