"""Names of topics: what is taken, what is refused before anything is sent."""

from __future__ import annotations

import pytest
from google.pubsub_v1.types import PublishRequest
from hypothesis import given
from hypothesis import strategies as st

from beam_hedge.message import encode_topic
from beam_hedge.topics import parse_topic
from tests.unit.refusals import NO_NUMBERS, assert_refused, kind


@pytest.mark.parametrize(
    ("topic", "parts"),
    [
        ("projects/p-test/topics/out", ("p-test", "out")),
        ("projects/p/topics/t", ("p", "t")),
        ("projects/123456789012/topics/t", ("123456789012", "t")),
        ("projects/example.com:my-project/topics/orders", ("example.com:my-project", "orders")),
        ("projects/p/topics/A.b_c~d+e-9", ("p", "A.b_c~d+e-9")),
        ("projects/p/topics/a%20b%2Fc%c3%A9", ("p", "a%20b%2Fc%c3%A9")),
        ("projects/p/topics/YOUR_TOPIC", ("p", "YOUR_TOPIC")),
        ("projects/p/topics/Google", ("p", "Google")),
        ("projects/p/topics/go-og", ("p", "go-og")),
        ("projects/p/topics/not-goog", ("p", "not-goog")),
    ],
)
def test_a_full_name_is_split_into_project_and_id(topic: str, parts: tuple[str, str]) -> None:
    """Every name that Pub/Sub knows can be published to."""
    assert parse_topic(topic) == parts


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "out",
        "topics/out",
        "projects/p/topics/",
        "projects//topics/out",
        "projects/p/topics/out/",
        "/projects/p/topics/out",
        "projects/p/topics/a/b",
        "projects/p/subscriptions/out",
        "Projects/p/topics/out",
        "projects/p/Topics/out",
        "pubsub.googleapis.com/projects/p/topics/out",
    ],
)
def test_what_is_no_full_name_is_refused(topic: str) -> None:
    """A short or misspelt name is told at once, not as NOT_FOUND by a worker."""
    assert_refused("topic", topic, lambda: parse_topic(topic))


@pytest.mark.parametrize(
    "topic",
    [
        "projects/<project>/topics/out",
        "projects/{p}/topics/out",
        "projects/YOUR_PROJECT/topics/out",
        "projects/$PROJECT/topics/out",
        "projects/[PROJECT]/topics/out",
        "projects/p/topics/<topic>",
        "projects/p/topics/{topic}",
        "projects/p/topics/$TOPIC",
        "projects/p/topics/%s",
    ],
)
def test_a_placeholder_that_was_not_filled_in_is_refused(topic: str) -> None:
    """A command that was copied from a page and not completed does not start a job."""
    assert_refused("topic", topic, lambda: parse_topic(topic))


@pytest.mark.parametrize("stray", [" ", "\n", "\r\n", "\t", "\0", "\u00a0", "\u200b", "\u00e9", "\u0661"])
@pytest.mark.parametrize(
    "place", ["{}projects/p/topics/out", "projects/p{}/topics/out", "projects/p/topics/o{}t"]
)
def test_spaces_line_ends_and_foreign_letters_are_refused(stray: str, place: str) -> None:
    """A space or a letter that looks right is found, wherever it stands."""
    topic = place.format(stray)
    assert_refused("topic", topic, lambda: parse_topic(topic))


@pytest.mark.parametrize("end", ["\n", " ", "\r", "\n\n", "\0"])
def test_a_line_end_behind_the_name_is_refused(end: str) -> None:
    """A name that was read from a file with its line end is refused, not sent."""
    topic = "projects/p/topics/out" + end
    assert_refused("topic", topic, lambda: parse_topic(topic))


@pytest.mark.parametrize("topic_id", ["a%", "a%2", "a%2g", "a%g2", "a%%20", "%20a", "a%2 "])
def test_a_broken_percent_escape_is_refused(topic_id: str) -> None:
    """A percent sign stands for a letter or is a mistake."""
    topic = f"projects/p/topics/{topic_id}"
    assert_refused("topic", topic, lambda: parse_topic(topic))


@pytest.mark.parametrize("topic_id", ["goog", "google", "goog-out", "goog%20"])
def test_an_id_that_starts_with_goog_is_refused(topic_id: str) -> None:
    """Names that the service keeps for itself are told before a job starts."""
    topic = f"projects/p/topics/{topic_id}"
    assert_refused("topic", topic, lambda: parse_topic(topic))


@pytest.mark.parametrize("first", ["1", "-", "_", ".", "~", "+", "%"])
def test_an_id_starts_with_a_letter(first: str) -> None:
    """An id that starts with anything but a letter is refused."""
    topic = f"projects/p/topics/{first}out"
    assert_refused("topic", topic, lambda: parse_topic(topic))


@pytest.mark.parametrize(
    "project",
    ["-p", "p-", "p_q", "P", "p.q", "example.com:", ":p", "example.com:p:q", "-e:p", "e-:p", "a b", "p%20"],
)
def test_a_project_that_cannot_exist_is_refused(project: str) -> None:
    """A project's id has lower letters, digits and dashes, and perhaps a domain before a colon."""
    topic = f"projects/{project}/topics/out"
    assert_refused("topic", topic, lambda: parse_topic(topic))


def test_an_id_has_at_most_255_characters() -> None:
    """The longest id that Pub/Sub takes is taken, and one letter more is refused."""
    longest = "projects/p/topics/" + "x" * 255
    too_long = longest + "x"
    assert parse_topic(longest) == ("p", "x" * 255)
    assert_refused("topic", too_long, lambda: parse_topic(too_long))


def test_a_name_has_at_most_512_characters() -> None:
    """A name that is a whole file by mistake makes a short error."""
    longest = "projects/{}/topics/out"
    project = "p" * (512 - len(longest.format("")))
    assert parse_topic(longest.format(project))[0] == project
    for topic in (longest.format(project + "p"), "projects/" + "a-" * 1_000_000):
        with pytest.raises(ValueError, match="topic must be") as raised:
            parse_topic(topic)
        assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    "topic", [*NO_NUMBERS, b"projects/p/topics/out", 1, ["projects/p/topics/out"]], ids=kind
)
def test_what_is_no_text_is_no_topic(topic: object) -> None:
    """A wrong type is told as a wrong topic, not as an AttributeError."""
    assert_refused("topic", topic, lambda: parse_topic(topic))


@given(
    project=st.from_regex(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", fullmatch=True),
    topic_id=st.from_regex(r"[A-Za-z][A-Za-z0-9._~+-]{2,254}", fullmatch=True),
)
def test_any_name_by_the_published_rules_is_taken_and_comes_back(project: str, topic_id: str) -> None:
    """What Google's page on resource names allows is allowed here, and is sent letter by letter."""
    topic = f"projects/{project}/topics/{topic_id}"
    if topic_id.startswith("goog"):
        assert_refused("topic", topic, lambda: parse_topic(topic))
        return
    assert parse_topic(topic) == (project, topic_id)
    assert encode_topic(topic) == PublishRequest.pb()(topic=topic).SerializeToString()
