"""The metadata's regular expressions against the pipelines' own readers: neither refuses what the other takes.

An expression must take all that a pipeline takes, or nobody could launch with it; and it should take nothing
that a pipeline cannot even read, or the launch page would say yes and the launch no.
"""

from __future__ import annotations

import re
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge import InvalidSettingError, WriteToPubSubHedged
from pipelines.options import HedgingOptions
from pipelines.relay_options import RelayOptions
from pipelines.text_options import TextOptions
from templates.kinds import BOOLEAN, DURATION, NUMBER, PAIRS, SUBSCRIPTION, TOPIC, WHOLE
from templates.metadata import PARAMETERS, TEMPLATES

TOPIC_NAME = "projects/p-test/topics/orders"
DECLARED = {
    name: options
    for options in (HedgingOptions, RelayOptions, TextOptions)
    for name in options([]).get_all_options(current_only=True)
}
# As Dataflow reads them: white space is that of ASCII.
EXPRESSIONS = {
    each["name"]: re.compile(each["regexes"][0], re.ASCII)
    for template in TEMPLATES
    for each in template.metadata()["parameters"]
    if "regexes" in each
}
# One parameter for each expression of which a value that matches is one that can be read.
EXACT = (
    "enable_hedging",
    "hedge_delay",
    "hedge_max_tokens",
    "hedge_refill_ratio",
    "flow_control_limit_exceeded_behavior",
    "input_format",
    "input_subscription",
)

_numbers = st.one_of(
    st.integers(0, 20_000_000).map(str),
    st.decimals(0, 1000, allow_nan=False, places=3).map(str),
    st.sampled_from(["1.", ".5", "+2", "00.10"]),
)
_spaced = st.sampled_from(["", " ", "\t"])
_units = st.sampled_from(["", "ms", "MS", "s", "S", "m", "h", "H"])
_words = st.sampled_from(
    ["true", "No", "ON", "off", "block", "Error", "ignore", "json", "TEXT", "2e3", "-1", "1s2"]
)
_pairs = st.lists(st.tuples(st.text("ab =", min_size=1), st.text("ab=.")), min_size=1).map(
    lambda pairs: ",".join(f"{key}={value}" for key, value in pairs)
)
_names = st.builds(
    "{}projects/{}/{}/{}".format,
    st.sampled_from(["", "", "//"]),
    st.sampled_from(["p-test", "example.com:p", "a", "P", ""]),
    st.sampled_from(["topics", "subscriptions"]),
    st.from_regex(r"[a-zA-Z0-9._~+%-]{1,8}", fullmatch=True),
)
TEXTS = st.one_of(
    st.builds("{}{}{}{}".format, _spaced, _numbers, _spaced, _units),
    st.builds("{}{}{}".format, _spaced, _words, _spaced),
    st.sampled_from(['{"a": "b"}', ' {"a": "b", "c": ""}', "{}", "gs://b/*.gz"]),
    _pairs,
    _names,
    st.text("0123456789.+-eE msSMhH,=:{}\"'/_ab\n\u0663\u00e9", max_size=10),
)


def matches(name: str, text: str) -> bool:
    """Tells whether the launch page lets a value pass."""
    return EXPRESSIONS[name].fullmatch(text) is not None


def reads(name: str, text: str) -> Any:
    """Returns what a pipeline's options make of a value; `None` if it is blank or cannot be read."""
    try:
        return getattr(DECLARED[name]([f"--{name}={text}"]), name)
    except SystemExit:
        return None


def takes(name: str, text: str) -> bool:
    """Tells whether a pipeline can be built with a value."""
    if reads(name, text) is None:
        return False
    if DECLARED[name] is not HedgingOptions:
        return True
    topic = text if PARAMETERS[name].kind is TOPIC else TOPIC_NAME
    try:
        WriteToPubSubHedged(**{**HedgingOptions([f"--{name}={text}"]).sink_arguments(), "topic": topic})
    except InvalidSettingError:
        return False
    return True


@pytest.mark.parametrize("name", sorted(set(EXPRESSIONS) - {"input", "outcomes", "pubsub_endpoint"}))
@given(text=TEXTS)
def test_what_a_pipeline_takes_can_be_entered(name: str, text: str) -> None:
    """Nobody is kept from launching with a value that works on the command line."""
    assert matches(name, text) or not takes(name, text)


@pytest.mark.parametrize("name", EXACT)
@given(data=st.data())
def test_what_can_be_entered_can_be_read(name: str, data: st.DataObject) -> None:
    """The launch page refuses what a launch would stop at."""
    pattern = PARAMETERS[name].kind.pattern
    assert pattern is not None
    text = data.draw(st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True))
    assert reads(name, text) is not None


@pytest.mark.parametrize("unit", [*string.ascii_letters, "ms", "mS", "Ms", "MS", "us", "sm", "min", "sec"])
def test_units_are_those_that_the_pipelines_know(unit: str) -> None:
    """A duration is entered as it is written on the command line, and in no other way."""
    assert matches("hedge_delay", f"1{unit}") == (reads("hedge_delay", f"1{unit}") is not None)


@given(text=st.from_regex(EXPRESSIONS["topic"], fullmatch=True))
def test_a_topic_that_can_be_entered_is_one(text: str) -> None:
    """A misspelt topic is refused on the launch page, unless it has a reserved name or is very long."""
    assert takes("topic", text) or "/topics/goog" in text or len(text) > 512


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (BOOLEAN, ["maybe", "tru", "2", "true false"]),
        (WHOLE, ["1.5", "-1", "1e3", "ten", "1,000"]),
        (NUMBER, ["-0.1", "1e3", "0,1", ".", "10%"]),
        (DURATION, ["1 sec", "-1s", "1s2", "s", "1:30", "1m30s", "500 ms."]),
        (TOPIC, ["orders", "projects/p/topics/", "projects/p/topic/orders", "projects/p/topics/a b",
                 "/projects/p/topics/orders", "projects/p/subscriptions/orders", "projects/p/topics/orders\n"]),
        (SUBSCRIPTION, ["orders", "projects/p/topics/orders", "projects/p/subscriptions/a b"]),
        (PAIRS, ["country", "=NL", "country=NL,kind", ",country=NL", "['country']"]),
    ],
)  # fmt: skip
def test_typical_mistakes_are_refused(kind: Any, wrong: list[str]) -> None:
    """A slip is found where it was made: on the launch page."""
    names = [name for name in EXPRESSIONS if PARAMETERS[name].kind is kind]
    assert names
    assert [(name, text) for name in names for text in wrong if matches(name, text)] == []


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("input", ["gs://bucket/a/*.jsonl.gz", "gs://bucket/two words"], ["bucket/a", "/home/a", "gs://"]),
        ("outcomes", ["gs://bucket/outcomes.jsonl"], ["outcomes.jsonl"]),
        ("pubsub_endpoint", ["europe-west1-pubsub.googleapis.com:443", "pubsub.googleapis.com"],
         ["https://pubsub.googleapis.com", "pubsub.googleapis.com:", "a b"]),
    ],
)  # fmt: skip
def test_places_in_the_cloud_are_told_from_others(name: str, right: list[str], wrong: list[str]) -> None:
    """A job is not launched with a file on somebody's own machine, or with a web address."""
    assert [text for text in right if not matches(name, text)] == []
    assert [text for text in wrong if matches(name, text)] == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.pipeline)
def test_optional_parameters_can_be_left_blank(template: Any) -> None:
    """A field that was cleared on the launch page is as good as one that was never filled in."""
    for each in template.metadata()["parameters"]:
        for expression in each.get("regexes", []):
            assert (re.fullmatch(expression, "") is not None) == each.get("isOptional", False)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_mean_the_same_to_everybody(name: str) -> None:
    """The console, the service and this test read an expression alike: none has what some dialects lack."""
    expression = EXPRESSIONS[name].pattern
    assert re.search(r"\(\?(?!:)|\\[1-9]|\\[AZbBdDwW]|[*+?}][+]", expression) is None
    assert expression.startswith("^")
    assert expression.endswith("$")
