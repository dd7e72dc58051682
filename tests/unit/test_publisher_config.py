"""What makes a publisher, given as objects or as the mappings that YAML has."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from google.cloud.pubsub_v1.types import BatchSettings, LimitExceededBehavior, PublishFlowControl

from beam_hedge.errors import InvalidSettingError
from beam_hedge.publisher_config import from_mapping
from beam_hedge.settings import DEFAULT_BATCH_SETTINGS, DEFAULT_FLOW_CONTROL, HedgingSettings, RetrySettings
from tests.unit.configs import TOPIC, make
from tests.unit.refusals import assert_refused

FIELDS = {
    "settings": ("hedge_delay", "max_tokens", "refill_ratio", "initial_tokens"),
    "retry_settings": (
        "initial_rpc_timeout",
        "total_timeout",
        "initial_retry_delay",
        "retry_delay_multiplier",
        "max_retry_delay",
    ),
    "flow_control": ("message_limit", "byte_limit", "limit_exceeded_behavior"),
}


@pytest.mark.parametrize(
    ("argument", "mapping", "expected"),
    [
        ("settings", {"hedge_delay": 0.5}, HedgingSettings(hedge_delay=0.5)),
        ("settings", {"max_tokens": 9, "initial_tokens": 9}, HedgingSettings(max_tokens=9, initial_tokens=9)),
        ("retry_settings", {"total_timeout": 30}, RetrySettings(total_timeout=30)),
        ("retry_settings", {"max_retry_delay": 1}, RetrySettings(max_retry_delay=1)),
        ("flow_control", {"byte_limit": 7}, DEFAULT_FLOW_CONTROL._replace(byte_limit=7)),
    ],
)
def test_a_mapping_stands_for_settings(argument: str, mapping: dict[str, Any], expected: object) -> None:
    """A YAML file names what it changes, and every other field keeps its documented default."""
    assert getattr(make(**{argument: mapping}), argument) == expected


@pytest.mark.parametrize("argument", FIELDS)
def test_an_empty_mapping_is_all_defaults(argument: str) -> None:
    """A key without anything below it changes nothing."""
    assert make(**{argument: {}}) == make()


def test_flow_control_by_mapping_still_blocks() -> None:
    """Whoever changes one limit keeps back-pressure: google-cloud-pubsub's own default would switch it off."""
    assert PublishFlowControl().limit_exceeded_behavior is not LimitExceededBehavior.BLOCK
    flow_control = make(flow_control={"message_limit": 5}).flow_control
    assert flow_control == PublishFlowControl(5, 100_000_000, LimitExceededBehavior.BLOCK)


@pytest.mark.parametrize("word", ["block", "BLOCK", "Block", "error", "ERROR", "ignore", "Ignore"])
def test_what_happens_at_the_limit_can_be_a_word(word: str) -> None:
    """YAML has no enums, so their values are written as words, in any case."""
    flow_control = make(flow_control={"limit_exceeded_behavior": word}).flow_control
    assert flow_control.limit_exceeded_behavior is LimitExceededBehavior[word.upper()]


@pytest.mark.parametrize("word", ["wait", "", "blocks", " block", 1, None, True, ["block"]], ids=repr)
def test_another_word_for_it_is_refused(word: Any) -> None:
    """A slip stops the launch and says which field it is in."""
    field = "flow_control.limit_exceeded_behavior"
    assert_refused(field, word, lambda: make(flow_control={"limit_exceeded_behavior": word}))


@pytest.mark.parametrize("argument", FIELDS)
def test_the_line_that_yaml_notes_is_no_setting(argument: str) -> None:
    """What Beam writes beside a mapping's keys is no mistake of the user's."""
    assert make(**{argument: {"__line__": 12, "__uuid__": "u"}}) == make()


@pytest.mark.parametrize("argument", FIELDS)
@pytest.mark.parametrize("key", ["hedge_dely", "", "HEDGE_DELAY", "_line_", 1, None], ids=repr)
def test_an_unknown_key_is_named_with_those_that_there_are(argument: str, key: Any) -> None:
    """A slip in a key is not ignored: the error shows it, and what it can be corrected to."""
    value = object()
    with pytest.raises(InvalidSettingError) as raised:
        make(**{argument: {key: value}})
    error = raised.value
    assert (error.field, error.value is value) == (f"{argument}.{key}", True)
    assert f"{argument} has {', '.join(FIELDS[argument])}" in str(error)


@pytest.mark.parametrize(
    ("argument", "mapping", "field"),
    [
        ("settings", {"hedge_delay": 0.01}, "hedge_delay"),
        ("settings", {"max_tokens": "50"}, "max_tokens"),
        ("settings", {"refill_ratio": True}, "refill_ratio"),
        ("retry_settings", {"total_timeout": 0}, "total_timeout"),
        ("flow_control", {"byte_limit": 0}, "flow_control.byte_limit"),
        ("flow_control", {"message_limit": 1.5}, "flow_control.message_limit"),
    ],
)
def test_values_in_a_mapping_are_checked(argument: str, mapping: dict[str, Any], field: str) -> None:
    """A mapping is no way around the limits."""
    [value] = mapping.values()
    assert_refused(field, value, lambda: make(**{argument: mapping}))


def test_mappings_are_checked_against_each_other() -> None:
    """A hedge delay that a batch could not live to see is refused, in whatever form it comes."""
    with pytest.raises(InvalidSettingError, match="hedge_delay must be strictly shorter"):
        make(settings={"hedge_delay": 5}, retry_settings={"initial_rpc_timeout": 5})


@pytest.mark.parametrize("argument", FIELDS)
@pytest.mark.parametrize("value", ["fast", 1, True, [("hedge_delay", 1)], BatchSettings()], ids=repr)
def test_neither_settings_nor_a_mapping_is_refused(argument: str, value: Any) -> None:
    """Settings of the wrong kind stop the launch."""
    assert_refused(argument, value, lambda: make(**{argument: value}))


@pytest.mark.parametrize("argument", ["retry_settings", "flow_control"])
def test_null_is_refused_where_it_means_nothing(argument: str) -> None:
    """Only hedging can be switched off; there is no publishing without deadlines."""
    assert_refused(argument, None, lambda: make(**{argument: None}))


def test_null_settings_switch_hedging_off() -> None:
    """`settings: null` in a YAML file publishes without hedging."""
    assert make(settings=None).settings is None


@pytest.mark.parametrize(
    ("argument", "value", "field"),
    [
        ("topic", "orders", "topic"),
        ("connections", 9, "connections"),
        ("connections", True, "connections"),
        ("tracing", "yes", "enable_open_telemetry_tracing"),
        ("tracing", 1, "enable_open_telemetry_tracing"),
    ],
)
def test_the_other_arguments_are_checked(argument: str, value: Any, field: str) -> None:
    """Every mistake is found when the publisher is built, under the name that the user wrote."""
    assert_refused(field, value, lambda: make(**{argument: value}))


def test_a_sink_without_one_topic_has_a_configuration() -> None:
    """A sink whose elements say where they go shares one publisher for all topics."""
    assert make(topic=None).topic is None
    assert make().topic == TOPIC


def test_a_mapping_is_only_read() -> None:
    """The user's own mapping can be used again, and one that cannot be changed will do."""
    mapping = MappingProxyType({"limit_exceeded_behavior": "error", "__line__": 3})
    made = from_mapping("flow_control", DEFAULT_FLOW_CONTROL, mapping)
    assert made.limit_exceeded_behavior is LimitExceededBehavior.ERROR
    assert dict(mapping) == {"limit_exceeded_behavior": "error", "__line__": 3}


def test_batch_settings_can_be_a_mapping() -> None:
    """Batches are set in a YAML file like everything else."""
    made = from_mapping("batch_settings", DEFAULT_BATCH_SETTINGS, {"max_messages": 7, "__line__": 3})
    assert made == DEFAULT_BATCH_SETTINGS._replace(max_messages=7)


@pytest.mark.parametrize("value", [None, 5, "text", HedgingSettings(), DEFAULT_FLOW_CONTROL], ids=repr)
def test_what_is_no_mapping_is_left_to_the_checks(value: object) -> None:
    """An object that the user made is used as it is."""
    assert from_mapping("settings", HedgingSettings(), value) is value
