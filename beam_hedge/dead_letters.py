"""Messages that could not be published, in the shapes that Beam's conventions fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.typehints.row_type import RowTypeConstraint

from beam_hedge.errors import MAX_DETAILS_BYTES, InvalidSettingError, bounded

TAG = "failed"
YAML_ROW = RowTypeConstraint.from_fields([("element", Any), ("msg", str), ("stack", str)])


@dataclass(frozen=True)
class FailedMessage:
    """A message that was not published because of what it holds.

    Attributes:
        element: The element, as it came.
        status: The name of the gRPC status, INVALID_ARGUMENT, whether our own check or the service refused it.
        reason: Which rule it breaks, or what the service said; at most 1,024 bytes.
    """

    element: Any
    status: str
    reason: str

    @classmethod
    def of(cls, element: object, reason: str) -> FailedMessage:
        """Makes one with a bounded reason."""
        return cls(element, "INVALID_ARGUMENT", bounded(reason, MAX_DETAILS_BYTES))


def to_error_record(failed: FailedMessage) -> tuple[Any, tuple[str, str, list[str]]]:
    """Returns the record that Beam's `with_exception_handling` gives to an `ErrorHandler`."""
    text = f"{failed.status}: {failed.reason}"
    return failed.element, ("InvalidMessageError", text, [text])


def to_yaml_row(failed: FailedMessage) -> beam.Row:
    """Returns the row that Beam YAML's error handling gives to an output."""
    return beam.Row(element=failed.element, msg=failed.reason, stack=failed.status)


def yaml_output(error_handling: Mapping[str, Any] | None) -> str | None:
    """Returns the name of the output that Beam YAML's `error_handling` asks for, if it does.

    Raises:
        InvalidSettingError: It is no mapping with `output` alone.
    """
    if error_handling is None:
        return None
    given = {}
    if isinstance(error_handling, Mapping):
        # Beam YAML adds the line that a mapping came from.
        given = {key: value for key, value in error_handling.items() if not str(key).startswith("__")}
    output = given.get("output")
    if set(given) != {"output"} or not isinstance(output, str) or not output or output == "good":
        raise InvalidSettingError(
            "error_handling", error_handling, 'a mapping {"output": name}, not named "good"'
        )
    return output
