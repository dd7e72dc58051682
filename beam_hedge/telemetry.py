"""The header that tells the server which attempt of a batch it sees."""

from __future__ import annotations

import base64

from google.pubsub_v1.types import PubsubClientTelemetry

HEADER = "x-goog-pubsub-client-telemetry"

_Telemetry = PubsubClientTelemetry.pb()
_SECOND_NS = 1_000_000_000


def telemetry_header(hedge: int, publish_start_time_ns: int | None = None) -> tuple[str, str]:
    """Builds the client-telemetry header of one attempt.

    Args:
        hedge: 0 for the original and its retries, then 1, 2, ... for the hedges.
        publish_start_time_ns: When `publish()` accepted the batch, in nanoseconds since the epoch; equal on
            all attempts of a batch.

    Returns:
        The header's name and value: a base64 `google.pubsub.v1.PubsubClientTelemetry`.

    Example:
        >>> telemetry_header(1)
        ('x-goog-pubsub-client-telemetry', 'CgIIAQ==')
    """
    telemetry = _Telemetry()
    operation = telemetry.publish_operation
    # An original's operation is empty on the wire, yet must be there.
    operation.SetInParent()
    operation.hedged_attempt_count = hedge
    if publish_start_time_ns is not None:
        time = operation.publish_start_time
        # Twice as fast as FromNanoseconds, and this is done for each attempt.
        time.seconds, time.nanos = divmod(publish_start_time_ns, _SECOND_NS)
    return HEADER, base64.b64encode(telemetry.SerializeToString()).decode("ascii")
