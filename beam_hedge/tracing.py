"""OpenTelemetry spans: one for each publish, and one below it for each attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from beam_hedge._version import __version__
from beam_hedge.interfaces import Refusal
from beam_hedge.outcome import PublishOutcome
from beam_hedge.topics import parse_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.context import Context

    from beam_hedge.batch import Batch
    from beam_hedge.errors import PublishError
    from beam_hedge.interfaces import Call


class PublishTrace:
    """The spans of one batch, named and attributed as google-cloud-pubsub's are.

    Args:
        batch: What is published.
        parent: The caller's context.
    """

    def __init__(self, batch: Batch, parent: Context) -> None:
        project, topic_id = parse_topic(batch.topic)
        # Looked up each time: a program may set its tracer provider after it has made a publisher.
        self._tracer = trace.get_tracer("beam_hedge", __version__)
        self._span = self._tracer.start_span(
            f"{topic_id} publish",
            context=parent,
            kind=SpanKind.PRODUCER,
            attributes={
                "messaging.system": "gcp_pubsub",
                "messaging.operation": "publish",
                "messaging.destination.name": topic_id,
                "gcp.project_id": project,
                "messaging.batch.message_count": batch.messages,
                "messaging.message.body.size": len(batch.request),
            },
        )
        self._context = trace.set_span_in_context(self._span, parent)

    def attempt(self, hedge: int, connection: int) -> Callable[[Call], None]:
        """Starts the span of an attempt: 0 for the original and its retries, then the hedge's number.

        Returns:
            What ends it, to be called with the call when that has ended.
        """
        span = self._tracer.start_span(
            "hedge" if hedge else "original",
            context=self._context,
            kind=SpanKind.CLIENT,
            attributes={"beam_hedge.hedge": hedge, "beam_hedge.connection": connection},
        )

        def end(call: Call) -> None:
            answer = Refusal(grpc.StatusCode.CANCELLED, "") if call.cancelled() else call.result()
            if isinstance(answer, Refusal):
                span.set_attribute("rpc.grpc.status_code", answer.status.value[0])
                span.set_status(StatusCode.ERROR, answer.status.name)
            span.end()

        return end

    def end(self, result: PublishOutcome | PublishError | None) -> None:
        """Ends the batch's span; `None`: its caller cancelled it."""
        if isinstance(result, PublishOutcome):
            self._span.set_attribute("beam_hedge.attempts", result.attempts)
            self._span.set_attribute("beam_hedge.winner", result.winner)
        else:
            self._span.set_status(StatusCode.ERROR, result.status.name if result is not None else "CANCELLED")
        self._span.end()
