"""Where connections lead and who they say we are: google-cloud-pubsub's rules, without any network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import google.auth.exceptions
import grpc
import pytest
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials, Credentials

from beam_hedge import HedgingPublisher
from beam_hedge.channel_factory import make_channel_factory
from tests.server.serving import TOPIC, all_ended, serving

if TYPE_CHECKING:
    from pathlib import Path

EUROPE = "europe-west1-pubsub.googleapis.com:443"


class FakeCredentials(Credentials):
    """Credentials that hold a token already."""

    def __init__(self, universe: str = "googleapis.com") -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # google-auth's has no annotations
        self.token = "not-a-secret"  # noqa: S105 - it opens nothing
        self._universe_domain = universe

    def refresh(self, request: object) -> None:  # noqa: ARG002, D102 - google-auth's signature
        raise AssertionError("nothing here needs a fresh token")


class Opened:
    """Takes the place of gRPC's constructors of channels, and notes what they are given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.secure: list[tuple[str, dict[str, Any]]] = []
        self.plain: list[tuple[str, dict[str, Any]]] = []
        monkeypatch.setattr(grpc.aio, "secure_channel", lambda *a, **k: self._note(self.secure, *a, **k))
        monkeypatch.setattr(grpc.aio, "insecure_channel", lambda *a, **k: self._note(self.plain, *a, **k))

    def _note(self, into: list[tuple[str, dict[str, Any]]], target: str, *args: Any, **kwargs: Any) -> object:
        into.append((target, {"credentials": args[0] if args else kwargs.get("credentials"), **kwargs}))
        return object()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Return what was opened."""
    return Opened(monkeypatch)


@pytest.mark.parametrize(
    ("client_options", "credentials", "target"),
    [
        (None, FakeCredentials(), "pubsub.googleapis.com:443"),
        ({"api_endpoint": EUROPE}, FakeCredentials(), EUROPE),
        (ClientOptions(api_endpoint=EUROPE), FakeCredentials(), EUROPE),
        ({"universe_domain": "example.com"}, FakeCredentials("example.com"), "pubsub.example.com:443"),
    ],
    ids=["default", "dict", "ClientOptions", "universe"],
)
def test_the_endpoint_is_the_one_of_the_client_options(
    opened: Opened, client_options: Any, credentials: Credentials, target: str
) -> None:
    """A locational endpoint is where the messages go, over TLS."""
    make_channel_factory(client_options, credentials)()
    [(host, arguments)] = opened.secure
    assert host == target
    assert isinstance(arguments["credentials"], grpc.ChannelCredentials)
    assert not opened.plain


def test_each_channel_has_a_connection_of_its_own_and_no_retries_of_grpc(opened: Opened) -> None:
    """Connections are not shared behind our back, and no attempt is sent that nobody counts."""
    make_channel_factory(None, FakeCredentials())()
    [(_, arguments)] = opened.secure
    options = dict(arguments["options"])
    assert options["grpc.use_local_subchannel_pool"] == 1
    assert options["grpc.enable_retries"] == 0
    assert options["grpc.max_send_message_length"] == -1


def test_no_credentials_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A worker without credentials says so when the publisher is made, not when a batch times out."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    with pytest.raises(google.auth.exceptions.DefaultCredentialsError):
        HedgingPublisher(TOPIC)


def test_the_emulator_wins_over_endpoint_and_credentials() -> None:
    """With PUBSUB_EMULATOR_HOST set nothing leaves for the real service, credentials included."""
    with serving() as server:
        options = {"api_endpoint": EUROPE}
        with HedgingPublisher(TOPIC, client_options=options, credentials=FakeCredentials()) as publisher:
            publisher.publish([b"x"]).result(10)
        [record] = all_ended(server, 1)
    assert "authorization" not in record.metadata
    assert "not-a-secret" not in str(dict(record.metadata))


def test_an_empty_emulator_variable_is_none(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """PUBSUB_EMULATOR_HOST="" means the real service, as for the client library."""
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "")
    make_channel_factory(None, AnonymousCredentials())()
    assert [target for target, _ in opened.secure] == ["pubsub.googleapis.com:443"]
