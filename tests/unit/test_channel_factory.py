"""Where connections go, and with which credentials. Nothing here reaches a network."""

from __future__ import annotations

from typing import Any

import google.auth
import grpc
import pytest
from google.api_core import grpc_helpers_async
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport

from beam_hedge.channel_factory import emulator_host, make_channel_factory

ENDPOINT = "europe-west1-pubsub.googleapis.com:443"


class _Opened:
    """What the factory opens: targets, and how."""

    def __init__(self) -> None:
        self.plain: list[tuple[str, dict[str, Any]]] = []
        self.secure: list[dict[str, Any]] = []

    def open_plain(self, target: str, options: Any) -> object:
        self.plain.append((target, dict(options)))
        return object()

    def open_secure(self, **kwargs: Any) -> object:
        self.secure.append(kwargs)
        return object()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> _Opened:
    """Channels that are recorded instead of opened, and no environment of this machine's."""
    recorder = _Opened()
    monkeypatch.setattr(grpc.aio, "insecure_channel", recorder.open_plain)
    monkeypatch.setattr(grpc_helpers_async, "create_channel", recorder.open_secure)
    for name in (
        "PUBSUB_EMULATOR_HOST",
        "GOOGLE_API_USE_MTLS_ENDPOINT",
        "GOOGLE_API_USE_CLIENT_CERTIFICATE",
        "GOOGLE_CLOUD_UNIVERSE_DOMAIN",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(google.auth, "default", _no_default)
    return recorder


def _no_default(**_kwargs: object) -> Any:
    raise DefaultCredentialsError("none in this test")


def test_by_default_connections_go_to_the_service(opened: _Opened) -> None:
    """A user who sets nothing publishes to Google's endpoint, as who they are."""
    credentials = AnonymousCredentials()
    make_channel_factory(None, credentials)()
    (channel,) = opened.secure
    assert channel["target"] == "pubsub.googleapis.com:443"
    assert channel["credentials"] is credentials
    assert opened.plain == []


@pytest.mark.parametrize("options", [None, {"api_endpoint": ENDPOINT}])
def test_a_service_account_is_given_the_scopes_and_the_audience_of_the_service(
    opened: _Opened, options: Any
) -> None:
    """A key file works as it does with the client library: without them, its token would be for nothing."""
    make_channel_factory(options, AnonymousCredentials())()
    (channel,) = opened.secure
    assert channel.get("default_scopes") == PublisherGrpcTransport.AUTH_SCOPES
    assert channel.get("default_host") == PublisherGrpcTransport.DEFAULT_HOST


@pytest.mark.parametrize("options", [{"api_endpoint": ENDPOINT}, ClientOptions(api_endpoint=ENDPOINT)])
def test_an_endpoint_can_be_set(opened: _Opened, options: Any) -> None:
    """A locational endpoint keeps data in its region, set in either form that the client library takes."""
    make_channel_factory(options, AnonymousCredentials())()
    assert [channel["target"] for channel in opened.secure] == [ENDPOINT]


def test_other_client_options_reach_the_connection(opened: _Opened) -> None:
    """The project that pays for requests, and own scopes, are those that the user set."""
    options = {"quota_project_id": "payer", "scopes": ["https://example.com/scope"]}
    make_channel_factory(options, AnonymousCredentials())()
    (channel,) = opened.secure
    assert channel["quota_project_id"] == "payer"
    assert channel["scopes"] == ["https://example.com/scope"]


def test_default_credentials_are_looked_up(opened: _Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a worker, its own account is used without being named."""
    credentials = AnonymousCredentials()
    monkeypatch.setattr(google.auth, "default", lambda **_kwargs: (credentials, "p-test"))
    make_channel_factory(None, None)()
    assert [channel["credentials"] for channel in opened.secure] == [credentials]


@pytest.mark.usefixtures("opened")
def test_missing_credentials_are_told_before_anything_is_sent() -> None:
    """A machine without credentials says so when the publisher is made."""
    with pytest.raises(DefaultCredentialsError):
        make_channel_factory(None, None)


@pytest.mark.parametrize("credentials", [None, AnonymousCredentials()])
@pytest.mark.parametrize("options", [None, {"api_endpoint": ENDPOINT}])
def test_an_emulator_gets_no_credentials(
    opened: _Opened, monkeypatch: pytest.MonkeyPatch, options: Any, credentials: Any
) -> None:
    """What the environment names is used in plain text, and no secret is sent there."""
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:8085")
    assert emulator_host() == "127.0.0.1:8085"
    make_channel_factory(options, credentials)()
    assert [target for target, _ in opened.plain] == ["127.0.0.1:8085"]
    assert opened.secure == []


def test_an_empty_emulator_variable_is_no_emulator(opened: _Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that a script left empty does not send messages into the void."""
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "")
    assert emulator_host() is None
    make_channel_factory(None, AnonymousCredentials())()
    assert len(opened.secure) == 1
    assert opened.plain == []


@pytest.mark.parametrize("emulator", ["127.0.0.1:8085", ""])
def test_each_channel_has_a_tcp_connection_of_its_own_and_no_retries(
    opened: _Opened, monkeypatch: pytest.MonkeyPatch, emulator: str
) -> None:
    """A hedge is on another connection than what it hedges, and nobody but us sends a request again."""
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", emulator)
    make_channel = make_channel_factory(None, AnonymousCredentials())
    assert make_channel() is not make_channel()
    options = [found for _, found in opened.plain] or [dict(channel["options"]) for channel in opened.secure]
    assert len(options) == 2
    for found in options:
        assert found["grpc.use_local_subchannel_pool"] == 1
        assert found["grpc.enable_retries"] == 0
        # A request of 10,000,000 bytes is more than gRPC sends by default.
        assert found["grpc.max_send_message_length"] == -1
