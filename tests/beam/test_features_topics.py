"""Topics that an element or the run decides, and what the runner's console shows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest
from apache_beam.metrics.metric import Lineage
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.options.value_provider import RuntimeValueProvider, StaticValueProvider
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.display import DisplayData

from beam_hedge import InvalidSettingError, WriteToPubSubHedged
from tests.beam.pipelines import RUNNERS, batches_of, run_pipeline
from tests.server.serving import TOPIC, UNHURRIED, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

BOTH = pytest.mark.parametrize("runner", ["fn_api", "bundle_based"])


def topic_of(element: bytes) -> str:
    """Returns the topic that an element names."""
    return f"projects/p-test/topics/{element.decode().split(':')[0]}"


@BOTH
@pytest.mark.parametrize("topics", [3, 150], ids=["few", "more than may be open at once"])
def test_topics_by_element_share_one_publisher(runner: str, topics: int) -> None:
    """Each message goes to its own topic, in batches, over the connections of one publisher."""
    elements = [f"t{number % topics}:{number}".encode() for number in range(2 * topics)]
    with serving() as server:
        for number in range(topics):
            server.create_topic(f"projects/p-test/topics/t{number}")
        transform = WriteToPubSubHedged(topic_of, UNHURRIED, batch_settings=batches_of(1000))
        run_pipeline(elements, transform, RUNNERS[runner])
        for number in range(topics):
            messages = server.messages(f"projects/p-test/topics/t{number}")
            assert sorted(message.data for message in messages) == sorted(
                element for element in elements if element.startswith(b"t%d:" % number)
            )
        assert len({record.peer_port for record in server.requests}) <= 2


@BOTH
def test_a_topic_that_is_none_is_a_dead_letter(runner: str) -> None:
    """A function that fails to name a topic for one element does not stop the others."""
    with serving() as server:
        with beam.Pipeline(options=PipelineOptions(RUNNERS[runner])) as pipeline:
            result = (
                pipeline
                | beam.Create([b"out:1", b"not a topic:2"])
                | WriteToPubSubHedged(topic_of, UNHURRIED, dead_letter=True)
            )
            elements = result.failed | beam.Map(lambda failed: (failed.element, failed.reason[:18]))
            assert_that(elements, equal_to([(b"not a topic:2", "the topic function")]))
        assert [message.data for message in server.messages(TOPIC)] == [b"out:1"]


def test_a_topic_that_is_none_fails_the_bundle_without_dead_letters() -> None:
    """Nothing is dropped because a function named no topic for it."""
    with serving() as server:
        with pytest.raises(Exception, match="the topic function gave a str that is no full topic name"):
            run_pipeline([b"not a topic:2"], WriteToPubSubHedged(topic_of, UNHURRIED))
        assert server.ledger().requests == 0


@pytest.fixture
def before_the_run() -> Iterator[None]:
    """Forget the options of an earlier run in this process: values are not there when a pipeline is built."""
    RuntimeValueProvider.runtime_options = None
    yield
    RuntimeValueProvider.runtime_options = None


@BOTH
@pytest.mark.usefixtures("before_the_run")
def test_a_value_provider_gives_the_topic_when_the_pipeline_runs(runner: str) -> None:
    """A template is built without a topic, and each run of it names one."""
    topic = RuntimeValueProvider("topic", str, TOPIC)
    assert not topic.is_accessible()
    with serving() as server:
        run_pipeline([b"x"], WriteToPubSubHedged(topic, UNHURRIED), RUNNERS[runner])
        assert [message.data for message in server.messages(TOPIC)] == [b"x"]


@pytest.mark.usefixtures("before_the_run")
@pytest.mark.parametrize(("given", "labels"), [(None, {}), ("orders", {"id_label": "id"})])
def test_a_run_without_a_topic_is_refused_with_what_is_wrong(given: str | None, labels: dict[str, Any]) -> None:
    """A run that forgot its topic, or misspelt it, fails at once and says so."""
    with serving() as server:
        transform = WriteToPubSubHedged(RuntimeValueProvider("topic", str, given), UNHURRIED, **labels)
        with pytest.raises(Exception, match=f"must be 'projects/PROJECT/topics/TOPIC'.*got {given!r}"):
            run_pipeline([b"x"], transform)
        assert server.ledger().requests == 0


def test_a_value_that_is_there_is_checked_when_the_pipeline_is_built() -> None:
    """A value that is known at launch is as good as text, and as strictly checked."""
    with serving() as server:
        run_pipeline([b"x"], WriteToPubSubHedged(StaticValueProvider(str, TOPIC), UNHURRIED))
        assert server.ledger().messages == 1
    with pytest.raises(InvalidSettingError, match="topic must be"):
        WriteToPubSubHedged(StaticValueProvider(str, "orders"))


def test_lineage_names_every_topic() -> None:
    """Data lineage shows where the messages went, domain-scoped projects included."""
    scoped = "projects/example.com:p-1/topics/t.1"

    def topic(element: bytes) -> str:
        return TOPIC if element == b"x" else scoped

    with serving() as server:
        server.create_topic(scoped)
        one = run_pipeline([b"x"], WriteToPubSubHedged(TOPIC, UNHURRIED))
        two = run_pipeline([b"x", b"y", b"x"], WriteToPubSubHedged(topic, UNHURRIED))
    assert Lineage.query(one.metrics(), Lineage.SINK) == {"pubsub:topic:p-test.out"}
    assert Lineage.query(two.metrics(), Lineage.SINK) == {
        "pubsub:topic:p-test.out",
        "pubsub:topic:`example.com:p-1`.`t.1`",
    }


@pytest.mark.usefixtures("before_the_run")
def test_display_data_shows_what_is_done_to_messages() -> None:
    """The runner's console shows labels, dead letters and where a topic comes from."""
    transform = WriteToPubSubHedged(
        RuntimeValueProvider("topic", str, None),
        id_label="id",
        timestamp_attribute="ts",
        dead_letter=True,
        with_attributes=True,
    )
    shown = {item.key: item.value for item in DisplayData.create_from(transform).items}
    assert {"id_label": "id", "timestamp_attribute": "ts", "dead_letter": True}.items() <= shown.items()
    assert shown["with_attributes"] is True
    assert "option: topic" in shown["topic"]
