"""Dead letters: their three shapes, how much of a reason they carry, and what YAML may ask for."""

from __future__ import annotations

import pickle
from types import MappingProxyType
from typing import Any

import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.dead_letters import FailedMessage, to_error_record, to_yaml_row, yaml_output
from tests.unit.refusals import assert_refused, kind

ELEMENTS = [b"payload", "text", PubsubMessage(b"x", {"a": "1"}), None, {"any": "thing"}]
REASON = "attribute 'k' has a value of 1200 B; at most 1024 B are allowed"


@pytest.mark.parametrize("element", ELEMENTS, ids=kind)
def test_a_dead_letter_holds_the_element_as_it_came(element: Any) -> None:
    """A user can mend and publish again what was refused: nothing of it was changed."""
    failed = FailedMessage.of(element, REASON)
    assert failed.element is element
    assert (failed.status, failed.reason) == ("INVALID_ARGUMENT", REASON)


def test_a_dead_letter_reaches_another_worker() -> None:
    """Dead letters can be shuffled and stored like any other element."""
    failed = FailedMessage.of(b"payload", REASON)
    assert pickle.loads(pickle.dumps(failed)) == failed


@pytest.mark.parametrize("element", ELEMENTS, ids=kind)
def test_an_error_handler_gets_beams_own_record(element: Any) -> None:
    """A handler that was written for `with_exception_handling` takes these records, too."""
    record = to_error_record(FailedMessage.of(element, REASON))
    text = f"INVALID_ARGUMENT: {REASON}"
    assert record == (element, ("InvalidMessageError", text, [text]))
    assert record[0] is element


@pytest.mark.parametrize("element", ELEMENTS, ids=kind)
def test_yaml_gets_its_own_row(element: Any) -> None:
    """An error output in a YAML file has the three fields that Beam documents."""
    row = to_yaml_row(FailedMessage.of(element, REASON))
    assert row.as_dict() == {"element": element, "msg": REASON, "stack": "INVALID_ARGUMENT"}
    assert list(row.as_dict()) == ["element", "msg", "stack"]


@pytest.mark.parametrize("length", [0, 1, 1023, 1024])
def test_a_reason_within_the_bound_is_kept_whole(length: int) -> None:
    """What the service said is passed on word for word if it is short."""
    assert FailedMessage.of(b"x", "r" * length).reason == "r" * length


@pytest.mark.parametrize("reason", ["r" * 1025, "\u00e9" * 513, "\U0001f600" * 2000, "r" + "\u20ac" * 5000])
def test_a_long_reason_is_cut_and_says_so(reason: str) -> None:
    """A service that answers with pages of text fills nobody's dead letter table."""
    cut = FailedMessage.of(b"x", reason).reason
    assert len(cut.encode()) <= 1024
    assert cut.endswith("...")
    assert reason.startswith(cut[:-3])
    # No more than one character is lost to the cut.
    assert len(cut.encode()) > 1024 - 4


@given(st.text(max_size=2000) | st.text(alphabet=st.characters(categories=["Cs", "Lo", "So"]), max_size=2000))
def test_every_reason_becomes_valid_text_within_the_bound(reason: str) -> None:
    """A dead letter can be written to any store, whatever a service or a check said."""
    failed = FailedMessage.of(b"x", reason)
    assert len(failed.reason.encode("utf-8")) <= 1024
    assert len(to_error_record(failed)[1][1].encode("utf-8")) <= 1024 + len("INVALID_ARGUMENT: ")


def test_without_error_handling_there_is_no_output() -> None:
    """A YAML file that asks for no error output gets none."""
    assert yaml_output(None) is None


@pytest.mark.parametrize(
    "error_handling",
    [
        {"output": "failed"},
        {"output": "failed", "__line__": 12},
        {"__line__": 12, "__uuid__": "u", "output": "failed"},
        MappingProxyType({"output": "failed"}),
    ],
    ids=["plain", "line", "more", "mapping"],
)
def test_yaml_names_the_output(error_handling: Any) -> None:
    """The name is taken from the mapping; what Beam notes beside it is no mistake of the user's."""
    assert yaml_output(error_handling) == "failed"


@pytest.mark.parametrize(
    "error_handling",
    [
        {},
        {"__line__": 12},
        {"output": ""},
        {"output": "good"},
        {"output": None},
        {"output": 1},
        {"output": True},
        {"output": b"failed"},
        {"output": ["failed"]},
        {"outputs": "failed"},
        {"output": "failed", "threshold": 0.1},
        {"output": "failed", 1: 2},
        "failed",
        b"failed",
        ["output"],
        ("output", "failed"),
        True,
        0,
    ],
    ids=repr,
)
def test_any_other_error_handling_is_refused(error_handling: Any) -> None:
    """A mistake in a YAML file stops the launch, before messages go to an output that nobody reads."""
    assert_refused("error_handling", error_handling, lambda: yaml_output(error_handling))
