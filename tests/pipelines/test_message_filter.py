"""Which messages a relay lets through."""

from __future__ import annotations

import pytest

from beam_hedge import InvalidSettingError
from pipelines.message_filter import MessageFilter


@pytest.mark.parametrize(
    ("message_filter", "through", "held_back"),
    [
        (MessageFilter(), [{}, {"k": "v"}], []),
        (MessageFilter("k"), [{"k": ""}, {"k": "v"}], [{}, {"K": "v"}, {"kk": "v"}]),
        (MessageFilter("k", "v"), [{"k": "v"}], [{}, {"k": "V"}, {"k": "v "}, {"k": "vv"}, {"a": "v"}]),
        # No expression: a dot is a dot.
        (MessageFilter("k", "a.c"), [{"k": "a.c"}], [{"k": "abc"}]),
        (
            MessageFilter("k", regex="a|bc"),
            [{"k": "a"}, {"k": "bc"}],
            [{}, {"k": "ab"}, {"k": "bcd"}, {"k": ""}],
        ),
        (MessageFilter("k", regex=".*b.*"), [{"k": "abc"}], [{"k": "ac"}, {"k": "a\nb"}]),
        (MessageFilter("k", regex="^$"), [{"k": ""}], [{}, {"k": "a"}]),
        # Everything but.
        (MessageFilter("k", regex="(?!a$).*"), [{"k": "b"}, {"k": "ab"}], [{"k": "a"}, {}]),
        (MessageFilter("k", regex="a"), [{"k": "a"}], [{"k": "a\n"}]),
    ],
)
def test_the_filter(
    message_filter: MessageFilter, through: list[dict[str, str]], held_back: list[dict[str, str]]
) -> None:
    """A value is compared whole, an expression matches whole, and who has no attribute stays out."""
    assert [each for each in through if not message_filter.lets_through(each)] == []
    assert [each for each in held_back if message_filter.lets_through(each)] == []


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((None, "v"), "filter_value"),
        ((None, None, "v"), "filter_regex"),
        (("k", "v", "v"), "filter_regex"),
    ],
)
def test_half_a_filter_is_refused(arguments: tuple[str | None, ...], field: str) -> None:
    """Who forgets the key does not get an unfiltered stream."""
    with pytest.raises(InvalidSettingError) as error:
        MessageFilter(*arguments)
    assert error.value.field == field
