"""How the embedded Pub/Sub says no."""

from __future__ import annotations

from typing import Any

import grpc


class RefusedError(Exception):
    """A request that the service refuses, with the status that a client receives.

    Attributes:
        code: The gRPC status code.
        details: What is wrong, in one sentence.
    """

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{code.name}: {details}")
        self.code: Any = code
        self.details = details


def invalid(details: str) -> RefusedError:
    """Returns the refusal of a malformed request."""
    return RefusedError(grpc.StatusCode.INVALID_ARGUMENT, details)


def not_found(kind: str, name: str) -> RefusedError:
    """Returns the refusal of a request that names something unknown."""
    return RefusedError(grpc.StatusCode.NOT_FOUND, f"{kind} not found: {name}")


def already_exists(kind: str, name: str) -> RefusedError:
    """Returns the refusal to create something twice."""
    return RefusedError(grpc.StatusCode.ALREADY_EXISTS, f"{kind} already exists: {name}")
