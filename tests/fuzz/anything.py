"""Values of any kind, as users, YAML files and elements of a pipeline may hold them."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from google.cloud.pubsub_v1.types import BatchSettings, LimitExceededBehavior, PublishFlowControl
from hypothesis import strategies as st

from beam_hedge import HedgingSettings, RetrySettings

Any_ = st.SearchStrategy[Any]

# Surrogates included, which a str can hold and UTF-8 cannot.
any_text = st.text(st.characters(exclude_categories=()), max_size=40)

_numbers: Any_ = st.one_of(
    st.integers(-3, 2_000),
    st.integers(),
    st.sampled_from((10**400, -(10**400), 2**53, 2**53 + 1, 2**63)),
    st.floats(),
    st.floats(0, 700),
    st.sampled_from((0.1, 10.0, 0.2, 0.001, math.nextafter(0.1, 0), math.nextafter(10, 11), 86_400.0)),
    st.booleans(),
    st.complex_numbers(),
    st.decimals(),
    st.fractions(),
)
_times: Any_ = st.one_of(
    st.timedeltas(),
    st.timedeltas(dt.timedelta(0), dt.timedelta(seconds=20)),
    st.datetimes(),
    st.times(),
)
_objects: Any_ = st.sampled_from(
    (
        None,
        object(),
        object,
        int,
        len,
        ...,
        NotImplemented,
        ValueError("no value"),
        HedgingSettings(),
        RetrySettings(),
        BatchSettings(),
        PublishFlowControl(),
        *LimitExceededBehavior,
    )
)
_scalars: Any_ = st.one_of(_numbers, _times, _objects, any_text, st.binary(max_size=40))

anything: Any_ = st.recursive(
    _scalars,
    lambda values: st.one_of(
        st.lists(values, max_size=3),
        st.tuples(values),
        st.dictionaries(st.one_of(any_text, st.integers(), st.none()), values, max_size=3),
        st.frozensets(st.one_of(st.integers(), any_text), max_size=3),
        st.binary(max_size=9).map(bytearray),
        st.binary(max_size=9).map(lambda data: memoryview(bytes(data))),
        st.iterables(st.integers(), max_size=3),
    ),
    max_leaves=4,
)


class Unspeakable:
    """A value that cannot be shown: it is in a state in which its class's own code fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no text for this")
