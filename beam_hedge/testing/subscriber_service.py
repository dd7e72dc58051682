"""The service google.pubsub.v1.Subscriber."""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING, Any

import grpc
from google.pubsub_v1 import types

from beam_hedge.testing.leases import Flow
from beam_hedge.testing.refusal import RefusedError, invalid
from beam_hedge.testing.rpc import EMPTY, page, service, streaming, unary, unary_with_context
from beam_hedge.testing.stream import PullStream, received
from beam_hedge.testing.subscription import MIN_ACK_DEADLINE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beam_hedge.testing.subscription import Subscription
    from beam_hedge.testing.topics import Topics


_Subscription: Any = types.Subscription.pb()
_PullResponse: Any = types.PullResponse.pb()
_ListSubscriptionsResponse: Any = types.ListSubscriptionsResponse.pb()
# Settings that change what a subscriber receives. To accept and ignore them would be a trap.
_UNSUPPORTED = frozenset(
    {
        "push_config",
        "bigquery_config",
        "cloud_storage_config",
        "filter",
        "dead_letter_policy",
        "enable_exactly_once_delivery",
        "message_transforms",
    }
)
_EMPTY_PUSH_CONFIG: Any = types.PushConfig.pb()()


class SubscriberService:
    """Pulling, and the administration of subscriptions.

    Args:
        topics: The topics and subscriptions.
        pull_wait: How long a pull waits for a first message, in seconds.
    """

    def __init__(self, topics: Topics, pull_wait: float) -> None:
        self._topics = topics
        self._pull_wait = pull_wait

    def to_grpc(self) -> grpc.GenericRpcHandler:
        """Returns the service as gRPC takes it."""
        return service(
            "Subscriber",
            {
                "CreateSubscription": unary(self._create, types.Subscription.pb()),
                "GetSubscription": unary(self._get, types.GetSubscriptionRequest.pb()),
                "ListSubscriptions": unary(self._list, types.ListSubscriptionsRequest.pb()),
                "DeleteSubscription": unary(self._delete, types.DeleteSubscriptionRequest.pb()),
                "Pull": unary_with_context(self._pull, types.PullRequest.pb()),
                "StreamingPull": streaming(self._streaming_pull, types.StreamingPullRequest.pb()),
                "Acknowledge": unary(self._acknowledge, types.AcknowledgeRequest.pb()),
                "ModifyAckDeadline": unary(self._modify, types.ModifyAckDeadlineRequest.pb()),
            },
        )

    def _create(self, request: Any) -> Any:
        for field, value in request.ListFields():
            # The client sends an empty push_config for a pull subscription.
            if field.name in _UNSUPPORTED and value != _EMPTY_PUSH_CONFIG:
                raise RefusedError(grpc.StatusCode.UNIMPLEMENTED, f"this server does not support {field.name}")
        return _describe(
            self._topics.subscribe(
                request.name,
                request.topic,
                ack_deadline=request.ack_deadline_seconds or MIN_ACK_DEADLINE,
                ordered=request.enable_message_ordering,
            )
        )

    def _get(self, request: Any) -> Any:
        return _describe(self._topics.subscription(request.subscription))

    def _list(self, request: Any) -> Any:
        found = self._topics.subscriptions_of(project=request.project)
        subscriptions, token = page([_describe(each) for each in found], request.page_size, request.page_token)
        return _ListSubscriptionsResponse(subscriptions=subscriptions, next_page_token=token)

    def _delete(self, request: Any) -> Any:
        self._topics.unsubscribe(request.subscription)
        return EMPTY

    def _pull(self, request: Any, context: Any) -> Any:
        subscription = self._topics.subscription(request.subscription)
        if request.max_messages <= 0:
            raise invalid(f"max_messages must be above 0, got {request.max_messages}")
        wait = 0.0 if request.return_immediately else self._pull_wait
        over = threading.Event()

        def end() -> None:
            over.set()
            subscription.wake()

        if not context.add_callback(end):
            return _PullResponse()
        leases = subscription.wait_and_take(request.max_messages, Flow(), monotonic() + wait, over.is_set)
        return _PullResponse(received_messages=received(leases))

    def _acknowledge(self, request: Any) -> Any:
        if not request.ack_ids:
            raise invalid("the request has no ack_ids")
        self._topics.subscription(request.subscription).acknowledge(request.ack_ids)
        return EMPTY

    def _modify(self, request: Any) -> Any:
        subscription = self._topics.subscription(request.subscription)
        for ack_id in request.ack_ids:
            subscription.modify_deadline(ack_id, request.ack_deadline_seconds)
        return EMPTY

    def _streaming_pull(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        first = next(requests, None)
        if first is None:
            return iter(())
        return PullStream(self._topics.subscription(first.subscription), first).run(requests, context)


def _describe(subscription: Subscription) -> Any:
    return _Subscription(
        name=subscription.name,
        topic=subscription.topic_name,
        ack_deadline_seconds=int(subscription.ack_deadline),
        enable_message_ordering=subscription.ordered,
    )
