"""The DoFn that remembers elements until the service has them: for all that the plain one cannot do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import WindowedValue  # noqa: TC002 - Beam reads the annotations

from beam_hedge.batch import seal_fields
from beam_hedge.bundle import Bundle
from beam_hedge.dead_letters import TAG, FailedMessage
from beam_hedge.display import plain_items
from beam_hedge.errors import InvalidMessageError, InvalidSettingError
from beam_hedge.isolate import isolate
from beam_hedge.topics import parse_topic
from beam_hedge.write_fn import WriteFn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from beam_hedge.batch import BatchBuilder
    from beam_hedge.errors import PublishError
    from beam_hedge.outcome import PublishOutcome

# So many topics may have an open batch at once; then all are sent.
_MAX_OPEN_BATCHES = 100
_NO_TIME = MIN_TIMESTAMP.micros
_END_OF_TIME = GlobalWindow().max_timestamp().micros


class TrackingWriteFn(WriteFn):
    """Publishes like `WriteFn`, with event times, topics by element, dead letters and outcomes.

    Each output has the timestamp and the windows of its element, an outcome those of its batch's last element.
    With outcomes, a batch ends where the elements' windows change.

    Args:
        topic_of: Gives an element's topic. Default: the configuration's topic.
        dead_letter: Whether refused messages are output instead of failing the bundle.
        with_outcomes: Whether outcomes are output.
        kwargs: As for `WriteFn`.
    """

    _builders: dict[str, BatchBuilder]
    _outputs: list[Any]

    def __init__(
        self,
        *args: Any,
        topic_of: Callable[[Any], Any] | None,
        dead_letter: bool,
        with_outcomes: bool,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._topic_of = topic_of
        self._counts_by_topic = topic_of is not None
        self._dead_letter = dead_letter
        self._with_outcomes = with_outcomes
        # Elements of what is out stay in memory, so only for those who ask for something that is made of them.
        self._remembers = dead_letter or with_outcomes

    def display_data(self) -> dict[str, Any]:
        """Shows the settings in the runner's console."""
        more = {
            "topic": self._topic_of and str(self._topic_of),
            "dead_letter": self._dead_letter,
        }
        return {**super().display_data(), **plain_items(more)}

    def start_bundle(self) -> None:
        super().start_bundle()
        self._builders = {}
        self._windows: Any = None
        self._outputs = []

    def process(
        self,
        element: Any,  # noqa: ARG002 - it is in windowed_value, too
        windowed_value: WindowedValue = beam.DoFn.WindowedValueParam,  # type: ignore[assignment]  # Beam fills it in
    ) -> Iterable[Any]:
        try:
            if self._with_outcomes and windowed_value.windows != self._windows:
                self._flush()
                self._windows = windowed_value.windows
            self._add(windowed_value)
        except BaseException:
            self._abandon()
            raise
        # Of an element in several windows, Beam multiplies the windows of what `process` returns.
        return self._take_outputs() if self._outputs and len(windowed_value.windows) == 1 else ()

    def finish_bundle(self) -> Iterable[Any]:
        super().finish_bundle()
        return self._take_outputs()

    def _new_bundle(self) -> Bundle:
        return Bundle(
            self._lease.publisher,
            self._metrics,
            on_published=self._published if self._with_outcomes else None,
            on_refused=self._refused if self._dead_letter else None,
        )

    def _add(self, windowed_value: WindowedValue) -> None:
        try:
            builder = self._builder_of(windowed_value.value)
            builder.add(self._encoded(windowed_value), windowed_value if self._remembers else None)
        except InvalidMessageError as error:
            if not self._dead_letter:
                raise
            self._fail(windowed_value, str(error))

    def _builder_of(self, value: Any) -> BatchBuilder:
        if self._topic_of is None:
            return self._builder
        topic = self._topic_of(self._element(value))
        builder = self._builders.get(topic) if isinstance(topic, str) else None
        if builder is None:
            try:
                parse_topic(topic)
            except InvalidSettingError:
                # Without the value, which can be a part of the element.
                kind = type(topic).__name__
                raise InvalidMessageError(
                    f"the topic function gave a {kind} that is no full topic name"
                ) from None
            if len(self._builders) >= _MAX_OPEN_BATCHES:
                self._flush()
                self._builders.clear()
            builder = self._builders[topic] = self._new_builder(topic)
        return builder

    def _element(self, value: Any) -> Any:
        return value[1] if self._labels.id_label is not None else value

    def _encoded(self, windowed_value: WindowedValue) -> bytes:
        labels = self._labels
        if not labels:
            return self._encode(windowed_value.value)
        message_id, element = (
            windowed_value.value if labels.id_label is not None else (None, windowed_value.value)
        )
        attributes = getattr(element, "attributes", None)
        event_time_ms = _event_time_ms(windowed_value) if labels.timestamp_attribute is not None else 0
        return self._encode(element, labels.of(attributes, message_id, event_time_ms))

    def _published(self, outcome: PublishOutcome, elements: Sequence[WindowedValue]) -> None:
        self._outputs.append(elements[-1].with_value(outcome))

    def _refused(self, refusal: PublishError, elements: Sequence[WindowedValue]) -> None:
        def publish(part: Sequence[WindowedValue]) -> PublishOutcome:
            return self._bundle.publish_now(
                seal_fields(refusal.topic, [self._encoded(element) for element in part])
            )

        found = isolate(refusal, elements, publish)
        for error, element in found.refused:
            self._fail(element, error.details)
        if self._with_outcomes:
            for outcome, part in found.published:
                self._published(outcome, part)

    def _fail(self, windowed_value: WindowedValue, reason: str) -> None:
        failed = FailedMessage.of(self._element(windowed_value.value), reason)
        self._metrics.add_failed_messages(1)
        self._outputs.append(beam.pvalue.TaggedOutput(TAG, windowed_value.with_value(failed)))

    def _flush(self) -> None:
        if self._topic_of is None:
            super()._flush()
        for builder in self._builders.values():
            builder.flush()

    def _take_outputs(self) -> list[Any]:
        outputs, self._outputs = self._outputs, []
        return outputs


def _event_time_ms(windowed_value: WindowedValue) -> int:
    micros: int = windowed_value.timestamp.micros
    if _NO_TIME < micros < _END_OF_TIME:
        return micros // 1000
    # Beam's way to say that an element has no time of its own.
    return time.time_ns() // 1_000_000
