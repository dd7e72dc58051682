"""What `pipelines.text_to_pubsub` makes of lines of JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge import InvalidMessageError
from pipelines.json_lines import to_message


def attribute(value: str) -> str | None:
    """Returns the attribute that a value in a line of JSON becomes."""
    attributes = to_message(b'{"a": %b}' % value.encode(), ["a"], None).attributes
    assert isinstance(attributes, dict)
    return attributes.get("a")


def test_the_whole_line_is_the_data_byte_for_byte() -> None:
    """Nothing about a line changes only because it is looked into."""
    line = b' {"b" : 1.10,"a":"\\u00e9"}\t'
    message = to_message(line, ["a"], None)
    assert (message.data, message.attributes) == (line, {"a": "\u00e9"})


def test_one_field_can_be_the_data() -> None:
    """Lines that wrap a payload are unwrapped: a text as UTF-8, other values as they stand."""
    line = '{"text": "\u00e9\\n", "deep": {"b": [1.10, null]}, "n": 1e2}'.encode()
    assert to_message(line, [], "text").data == "\u00e9\n".encode()
    assert to_message(line, [], "deep").data == b'{"b": [1.10, null]}'
    assert to_message(line, ["n"], "n").data == b"1e2"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"text"', "text"),
        ('""', ""),
        ('"\\"\\u00e9\\ud83d\\ude00"', '"\u00e9\U0001f600'),
        ("1", "1"),
        ("-0", "-0"),
        ("1.10", "1.10"),
        ("1E+2", "1E+2"),
        ("12345678901234567890.123456789", "12345678901234567890.123456789"),
        ("9" * 5000, "9" * 5000),
        ("true", "true"),
        ("false", "false"),
        ('[1, "b"]', '[1, "b"]'),
        ('{"c":{}}', '{"c":{}}'),
        ("null", None),
    ],
)
def test_values_that_are_no_texts_become_the_json_that_stands_there(value: str, expected: str | None) -> None:
    """No digit of an amount or an id is lost; null means that there is none."""
    assert attribute(value) == expected


def test_a_missing_field_gives_no_attribute() -> None:
    """A line without an optional field is published without it."""
    assert to_message(b"{}", ["a"], None).attributes == {}


def test_a_name_that_comes_twice_counts_with_its_last_value() -> None:
    """Such a line means the same to us as to other readers of JSON."""
    assert to_message(b'{"a": 1, "a": 2}', ["a"], None).attributes == {"a": "2"}
    assert to_message(b'{"a": 1, "a": null}', ["a"], None).attributes == {}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"not json", "no JSON object: '{' is missing at character 0"),
        (b"[1]", "no JSON object"),
        (b'"a"', "no JSON object"),
        (b"null", "no JSON object"),
        (b"{", "no JSON object"),
        (b'{"a"}', "':' is missing"),
        (b'{"a":}', "no JSON object"),
        (b'{"a":1,}', "no JSON object"),
        (b'{"a":1 "b":2}', "',' is missing"),
        (b'{"a":1}{"b":2}', "something follows"),
        (b'{"a":1}]', "something follows"),
        (b"{'a':1}", "no JSON object"),
        (b"{1:1}", "no JSON object"),
        (b'{["a"]:1}', "no JSON object"),
        (b'{"a":NaN}', "NaN is no JSON"),
        (b'{"a":-Infinity}', "-Infinity is no JSON"),
        (b'{"a":01}', "no JSON object"),
        (b'{"a":"\t"}', "no JSON object"),
        (b'{"a":"\xff"}', "not UTF-8 from byte 6 on"),
        (b"\xef\xbb\xbf{}", "no JSON object"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8"),
        (b'{"a":' + b"[" * 100_000, "no JSON object"),
        (b'{"data":null}', "no field 'data'"),
        (b'{"Data":1}', "no field 'data'"),
        (b'{"data":"\\ud800"}', "lone surrogate"),
    ],
)
def test_what_is_no_json_object_is_refused_with_the_reason(line: bytes, said: str) -> None:
    """A line that cannot be understood is never published in part, and the reason does not repeat it."""
    with pytest.raises(InvalidMessageError) as error:
        to_message(line, ["a"], "data")
    assert said in str(error.value)
    assert len(str(error.value)) < 200


_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1), _VALUES, max_size=5), st.sampled_from([None, 1]), st.booleans())
def test_every_json_object_is_read_as_python_reads_it(
    fields: dict[str, object], indent: int | None, ascii_only: bool
) -> None:
    """Whatever an object holds, and however it is spaced, each field arrives."""
    line = json.dumps(fields, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    attributes = to_message(line, list(fields), None).attributes
    assert isinstance(attributes, dict)
    assert set(attributes) == {name for name, value in fields.items() if value is not None}
    for name, text in attributes.items():
        value = fields[name]
        assert text == value if isinstance(value, str) else json.loads(text) == value
