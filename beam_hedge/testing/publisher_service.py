"""The service google.pubsub.v1.Publisher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
from google.pubsub_v1 import types

from beam_hedge.testing.rpc import EMPTY, page, service, unary

if TYPE_CHECKING:
    from beam_hedge.testing.publish_call import PublishCalls
    from beam_hedge.testing.topics import Topics


_Topic: Any = types.Topic.pb()
_ListTopicsResponse: Any = types.ListTopicsResponse.pb()
_ListTopicSubscriptionsResponse: Any = types.ListTopicSubscriptionsResponse.pb()


class PublisherService:
    """Publishing, and the administration of topics.

    Args:
        topics: The topics.
        calls: What answers publish calls.
    """

    def __init__(self, topics: Topics, calls: PublishCalls) -> None:
        self._topics = topics
        self._calls = calls

    def to_grpc(self) -> grpc.GenericRpcHandler:
        """Returns the service as gRPC takes it."""
        return service(
            "Publisher",
            {
                # The request stays encoded: that is how it is stored, recorded and measured.
                "Publish": grpc.unary_unary_rpc_method_handler(self._calls.handle),
                "CreateTopic": unary(self._create, types.Topic.pb()),
                "GetTopic": unary(self._get, types.GetTopicRequest.pb()),
                "ListTopics": unary(self._list, types.ListTopicsRequest.pb()),
                "ListTopicSubscriptions": unary(
                    self._list_subscriptions, types.ListTopicSubscriptionsRequest.pb()
                ),
                "DeleteTopic": unary(self._delete, types.DeleteTopicRequest.pb()),
            },
        )

    def _create(self, request: Any) -> Any:
        self._topics.create(request.name)
        return _Topic(name=request.name)

    def _get(self, request: Any) -> Any:
        return _Topic(name=self._topics.get(request.topic))

    def _list(self, request: Any) -> Any:
        names, token = page(self._topics.names(request.project), request.page_size, request.page_token)
        return _ListTopicsResponse(topics=[_Topic(name=name) for name in names], next_page_token=token)

    def _list_subscriptions(self, request: Any) -> Any:
        found = self._topics.subscriptions_of(self._topics.get(request.topic))
        names, token = page([each.name for each in found], request.page_size, request.page_token)
        return _ListTopicSubscriptionsResponse(subscriptions=names, next_page_token=token)

    def _delete(self, request: Any) -> Any:
        self._topics.delete(request.topic)
        return EMPTY
