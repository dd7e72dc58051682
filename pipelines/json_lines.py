"""Lines of JSON: one field, or all of the line, becomes data, and some fields become attributes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage

from beam_hedge import FailedMessage, InvalidMessageError
from pipelines.counters import StepCounter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FAILED = "failed"
_WHITESPACE = re.compile(r"[ \t\n\r]*")


class ParseJsonLines(beam.PTransform["beam.PCollection[bytes]", Any]):
    """Makes messages of lines that hold a JSON object each.

    A field that holds a text becomes that text; any other value becomes the JSON that stands in the file, digit
    by digit. An attribute whose field is missing or null is left out and counted. Lines of white space are
    left out and counted. A line that is no JSON object in UTF-8, and one without its data field, cannot be
    published.

    Args:
        attribute_fields: Fields that become attributes of the same names.
        data_field: The field that becomes the data. `None`: the whole line, byte for byte.
        dead_letter: True: lines that cannot be published are `FailedMessage`s in the output `FAILED`. False:
            each fails its bundle.
    """

    def __init__(self, attribute_fields: Sequence[str], data_field: str | None, *, dead_letter: bool) -> None:
        super().__init__()
        self._arguments = (tuple(attribute_fields), data_field, dead_letter)

    def expand(self, lines: beam.PCollection[bytes]) -> Any:
        """Adds the parsing step; its result has the outputs `messages` and `FAILED`."""
        parse = beam.ParDo(_ParseFn(*self._arguments)).with_output_types(PubsubMessage)
        outputs: Any = lines | "Parse" >> parse.with_outputs(FAILED, main="messages")
        # Beam takes every output to be of the main one's type.
        outputs[FAILED].element_type = FailedMessage
        return outputs


def to_message(line: bytes, attribute_fields: Sequence[str], data_field: str | None) -> PubsubMessage:
    """Makes the message of one line.

    Raises:
        InvalidMessageError: The line is no JSON object in UTF-8, or the data field is missing. The text holds
            nothing of the line.
    """
    fields = _members(line)
    attributes = {name: fields[name] for name in attribute_fields if name in fields}
    if data_field is None:
        return PubsubMessage(line, attributes)
    if data_field not in fields:
        raise InvalidMessageError(f"a line has no field {data_field!r}, which is to be the data")
    try:
        return PubsubMessage(fields[data_field].encode(), attributes)
    except UnicodeEncodeError:
        raise InvalidMessageError(
            f"the field {data_field!r} holds a lone surrogate, which UTF-8 cannot encode"
        ) from None


class _ParseFn(beam.DoFn):
    def __init__(self, attribute_fields: Sequence[str], data_field: str | None, dead_letter: bool) -> None:  # noqa: FBT001
        super().__init__()  # type: ignore[no-untyped-call]  # Beam's has no annotations
        self._attribute_fields = attribute_fields
        self._data_field = data_field
        self._dead_letter = dead_letter
        self._skipped = StepCounter("empty_lines_skipped")
        self._missing = StepCounter("attribute_fields_missing")

    def process(self, line: bytes) -> Iterator[Any]:
        if not line.strip(b" \t\r\n"):
            self._skipped.inc()
            return
        try:
            message = to_message(line, self._attribute_fields, self._data_field)
        except InvalidMessageError as error:
            if not self._dead_letter:
                raise
            yield beam.pvalue.TaggedOutput(FAILED, FailedMessage.of(line, str(error)))
            return
        self._missing.inc(len(self._attribute_fields) - len(message.attributes))
        yield message


def _members(line: bytes) -> dict[str, str]:
    """Returns the fields of a JSON object that are not null: texts as they are, other values as they stand."""
    try:
        return _scan(line.decode())
    except UnicodeDecodeError as error:
        raise InvalidMessageError(f"a line is not UTF-8 from byte {error.start} on") from None
    except json.JSONDecodeError as error:
        raise InvalidMessageError(f"a line is no JSON object: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise InvalidMessageError("a line is no JSON object: it is nested too deeply") from None


def _scan(text: str) -> dict[str, str]:
    # json.loads would turn 1.10 into 1.1, and 12345678901234567890.5 into another number.
    found: dict[str, str] = {}
    at = _expect(text, 0, "{")
    closed = text.startswith("}", at)
    while not closed:
        key, at = _value(text, at)
        if not isinstance(key, str) or text[at - 1] != '"':
            raise json.JSONDecodeError("a field's name is no text", text, at)
        start = _expect(text, at, ":")
        value, end = _value(text, start)
        # Of a name that comes twice the last counts, as in Python's own reader.
        found.pop(key, None)
        if value is not None:
            found[key] = value if text[start] == '"' else text[start:end]
        at = _after_space(text, end)
        closed = text.startswith("}", at)
        if not closed:
            at = _expect(text, at, ",")
    if _after_space(text, at + 1) != len(text):
        raise json.JSONDecodeError("something follows the object", text, at + 1)
    return found


def _refuse(constant: str) -> NoReturn:
    raise json.JSONDecodeError(f"{constant} is no JSON", "", 0)


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_int=str, parse_float=str)


def _value(text: str, at: int) -> tuple[Any, int]:
    return _DECODER.raw_decode(text, at)


def _expect(text: str, at: int, mark: str) -> int:
    """Returns where the next token begins after a mark that must be here, but for white space."""
    at = _after_space(text, at)
    if not text.startswith(mark, at):
        raise json.JSONDecodeError(f"{mark!r} is missing", text, at)
    return _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    match = _WHITESPACE.match(text, at)
    assert match is not None
    return match.end()
