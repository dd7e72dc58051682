"""Publishes with a token that expires and is renewed badly: gRPC reads which roots it trusts once a process.

Run as `python -m tests.faults.program_token ENDPOINT RENEWALS MESSAGES SECONDS`. RENEWALS has a letter for each
time that a token is asked for: `y` gives one that expires at once, `n` fails; the last one is repeated. SECONDS
is the total timeout. The result is one line of JSON.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import threading
from typing import Any

from google.auth.credentials import Credentials
from google.auth.exceptions import RefreshError

from beam_hedge import HedgingPublisher, HedgingSettings, RetrySettings
from tests.faults.publishing import Caller
from tests.server.serving import TOPIC

_SETTINGS = HedgingSettings(hedge_delay=0.5)


class _Expiring(Credentials):
    """Gives tokens as the program's argument says. The lock makes each renewal take one letter."""

    def __init__(self, renewals: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._renewals = renewals
        self._lock = threading.Lock()
        self.asked = 0

    def refresh(self, request: object) -> None:
        del request
        with self._lock:
            works = self._renewals[min(self.asked, len(self._renewals) - 1)] == "y"
            self.asked += 1
        if not works:
            raise RefreshError("the token cannot be renewed")
        self.token = f"token-{self.asked}"
        self.expiry = dt.datetime.now(dt.timezone.utc).replace(tzinfo=None)


def _publish(endpoint: str, renewals: str, messages: int, seconds: float) -> dict[str, Any]:
    credentials = _Expiring(renewals)
    retry = RetrySettings(total_timeout=seconds, initial_retry_delay=0.05, max_retry_delay=0.2)
    with HedgingPublisher(
        TOPIC,
        _SETTINGS,
        retry_settings=retry,
        client_options={"api_endpoint": endpoint},
        credentials=credentials,
    ) as publisher:
        caller = Caller(publisher)
        caller.publish_each(messages)
        caller.wait()
    told = [(messages[0].decode(), future.exception()) for future, messages in caller.sent.items()]
    return {
        "acknowledged": [message for message, error in told if error is None],
        "failed": [message for message, error in told if error is not None],
        "errors": sorted({error.status.name for error in caller.errors}),
        "hedges": caller.hedges,
        "asked": credentials.asked,
    }


if __name__ == "__main__":
    endpoint, renewals, messages, seconds = sys.argv[1:]
    sys.stdout.write(json.dumps(_publish(endpoint, renewals, int(messages), float(seconds))) + "\n")
