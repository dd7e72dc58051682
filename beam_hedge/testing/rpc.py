"""From plain functions to gRPC methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import empty_pb2

from beam_hedge.testing.refusal import RefusedError, invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


EMPTY: Any = empty_pb2.Empty()


def unary(handle: Callable[[Any], Any], request_type: Any) -> grpc.RpcMethodHandler[Any, Any]:
    """Returns the method handler of a call with one request and one response.

    Args:
        handle: A function of the request that returns the response; it may raise `RefusedError`.
        request_type: The raw protobuf class of the request.
    """
    return unary_with_context(lambda request, _: handle(request), request_type)


def unary_with_context(handle: Callable[[Any, Any], Any], request_type: Any) -> grpc.RpcMethodHandler[Any, Any]:
    """Returns what `unary()` does, for a function of request and gRPC context."""

    def answer(request: Any, context: Any) -> Any:
        try:
            return handle(request, context)
        except RefusedError as refusal:
            context.abort(refusal.code, refusal.details)

    return grpc.unary_unary_rpc_method_handler(answer, request_type.FromString, _serialize)


def streaming(
    handle: Callable[[Iterator[Any], Any], Iterator[Any]], request_type: Any
) -> grpc.RpcMethodHandler[Any, Any]:
    """Returns the method handler of a call with a stream in each direction; otherwise as `unary()`."""

    def answer(requests: Iterator[Any], context: Any) -> Iterator[Any]:
        try:
            yield from handle(requests, context)
        except RefusedError as refusal:
            context.abort(refusal.code, refusal.details)

    return grpc.stream_stream_rpc_method_handler(answer, request_type.FromString, _serialize)


def service(name: str, methods: Mapping[str, grpc.RpcMethodHandler[Any, Any]]) -> grpc.GenericRpcHandler:
    """Returns a service of the package google.pubsub.v1; its other methods answer UNIMPLEMENTED."""
    return grpc.method_handlers_generic_handler(f"google.pubsub.v1.{name}", dict(methods))


def page(items: Sequence[Any], size: int, token: str) -> tuple[Sequence[Any], str]:
    """Returns one page of a list, and the token of the next page or "".

    Args:
        items: The whole list.
        size: How many items a page holds; 0 for all.
        token: The token that the client sent; "" for the first page.

    Raises:
        RefusedError: INVALID_ARGUMENT if size or token is malformed.
    """
    if size < 0 or (token and not token.isdecimal()):
        raise invalid(f"invalid page: page_size {size}, page_token {token!r}")
    start = int(token or 0)
    end = start + size if size else len(items)
    return items[start:end], str(end) if end < len(items) else ""


def _serialize(message: Any) -> bytes:
    serialized: bytes = message.SerializeToString()
    return serialized
