"""Where the service is and who we are there, as google-cloud-pubsub and google-api-core decide it."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

import grpc
from google.api_core import grpc_helpers_async
from google.api_core.gapic_v1.client_info import ClientInfo
from google.pubsub_v1 import PublisherClient, gapic_version
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport

from beam_hedge._version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.api_core.client_options import ClientOptions
    from google.auth.credentials import Credentials

CLIENT_INFO = ClientInfo(
    gapic_version=gapic_version.__version__,
    client_library_version=__version__,
    user_agent=f"beam-hedge/{__version__}",
)

_EMULATOR_VARIABLE = "PUBSUB_EMULATOR_HOST"
# Two channels to one target share a TCP connection unless each keeps its own pool of subchannels. Retries
# are ours: a second layer of them would send attempts that nobody counts.
_OWN_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # A status with a long text would otherwise arrive as another status.
    ("grpc.max_metadata_size", 4 * 1024 * 1024),
    ("grpc.keepalive_time_ms", 30_000),
    # By default the pause between tries to connect grows to two minutes: too long after a short outage.
    ("grpc.max_reconnect_backoff_ms", 1_000),
)


def emulator_host() -> str | None:
    """Returns where the environment says that an emulator listens, as google-cloud-pubsub reads it."""
    return os.environ.get(_EMULATOR_VARIABLE) or None


def make_channel_factory(
    client_options: ClientOptions | dict[str, Any] | None, credentials: Credentials | None
) -> Callable[[], grpc.aio.Channel]:
    """Finds the endpoint and the credentials, and returns what opens one more connection to it.

    With `PUBSUB_EMULATOR_HOST` set, connections are plaintext and carry no credentials. Otherwise the
    endpoint, mutual TLS, universe domain, quota project and default credentials are those that the client
    library would use.

    Args:
        client_options: As for the client library.
        credentials: Default: application default credentials.

    Returns:
        A function that makes a channel with a TCP connection of its own. Call it on a running event loop.

    Raises:
        google.auth.exceptions.DefaultCredentialsError: There are no credentials.
    """
    emulator = emulator_host()
    if emulator:
        return functools.partial(grpc.aio.insecure_channel, emulator, options=_OWN_OPTIONS)

    found: dict[str, Any] = {}

    def record(host: str, **kwargs: Any) -> grpc.Channel:
        found.update(kwargs, target=host)
        # The client wants a channel, but this one is never used and so never connects.
        return grpc.insecure_channel(host)

    client = PublisherClient(
        credentials=credentials,
        client_options=client_options,
        client_info=CLIENT_INFO,
        transport=functools.partial(PublisherGrpcTransport, channel=record),
    )
    client.transport.close()
    # What the transport's own way to make channels would add.
    found["default_scopes"] = PublisherGrpcTransport.AUTH_SCOPES
    found["default_host"] = PublisherGrpcTransport.DEFAULT_HOST
    found["options"] = (*found.get("options", ()), *_OWN_OPTIONS)
    return functools.partial(grpc_helpers_async.create_channel, **found)
