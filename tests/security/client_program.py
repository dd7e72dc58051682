"""Publishes once, in a process of its own: gRPC reads which roots it trusts once a process.

Run as `python -m tests.security.client_program ENDPOINT WAY [CERTIFICATE KEY]`, where WAY is `publisher` or
`beam`. The last two are files: who this client says that it is. The result is one line of JSON.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import apache_beam as beam
from google.oauth2.credentials import Credentials

from beam_hedge import HedgingPublisher, HedgingSettings, PublishError, RetrySettings, WriteToPubSubHedged

TOPIC = "projects/p-test/topics/out"
TOKEN = "token-that-only-the-service-may-see"  # noqa: S105 - it opens nothing
PAYLOAD = b"payload-that-only-the-service-may-see"
_SETTINGS = HedgingSettings(hedge_delay=0.5, initial_tokens=5)
_RETRY = RetrySettings(initial_rpc_timeout=10, total_timeout=10)
_SHORT = RetrySettings(initial_rpc_timeout=2, total_timeout=2, initial_retry_delay=0.05, max_retry_delay=0.2)


def _arguments(endpoint: str, way: str, files: list[str]) -> dict[str, Any]:
    options: dict[str, Any] = {"api_endpoint": endpoint}
    if files:
        chain, key = (Path(file).read_bytes() for file in files)
        options["client_cert_source"] = lambda: (chain, key)
    return {
        "retry_settings": _SHORT if way == "in vain" else _RETRY,
        "client_options": options,
        "credentials": Credentials(token=TOKEN),
    }


def main(endpoint: str, way: str, *files: str) -> None:
    """Publishes, and says what came of it."""
    # Whatever the library would ever log is on standard error.
    logging.basicConfig(level=logging.DEBUG)
    arguments = _arguments(endpoint, way, list(files))
    if way == "beam":
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            _ = pipeline | beam.Create([PAYLOAD]) | WriteToPubSubHedged(TOPIC, _SETTINGS, **arguments)
        result: dict[str, Any] = {}
    else:
        with HedgingPublisher(TOPIC, _SETTINGS, **arguments) as publisher:
            error = (future := publisher.publish([PAYLOAD])).exception()
            if isinstance(error, PublishError):
                result = {"status": error.status.name, "text": str(error)}
            else:
                result = {"hedges": future.result().hedges, "text": repr(publisher)}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
