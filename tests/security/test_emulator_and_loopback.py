"""What is sent in plain text, to whom, and who can reach the servers that tests start."""

from __future__ import annotations

import inspect
import socket
import sys
from typing import Any, ClassVar

import pytest
from google.oauth2.credentials import Credentials

from beam_hedge import HedgingPublisher, WriteToPubSubHedged
from beam_hedge.channel_factory import make_channel_factory
from beam_hedge.testing import LocalPubSub
from pipelines.options import HedgingOptions
from tests.beam.pipelines import close_publishers, run_pipeline
from tests.server.serving import EAGER, PATIENCE, TOPIC, by_attempt, serving

TOKEN = "token-that-no-emulator-may-see"  # noqa: S105 - it opens nothing


class _Watched(Credentials):
    """Credentials that note when somebody makes use of them."""

    # Copies that a pickler makes note it in the same place.
    used: ClassVar[list[str]] = []

    def before_request(self, *_args: object) -> None:
        """Adds the token to a request."""
        self.used.append("request")

    def refresh(self, _request: object) -> None:
        """Gets a new token."""
        self.used.append("refresh")


@pytest.fixture
def credentials() -> _Watched:
    """Return credentials that nobody has used."""
    _Watched.used.clear()
    return _Watched(token=TOKEN)  # type: ignore[no-untyped-call]


def test_an_emulator_gets_no_credentials_that_were_given_to_a_publisher(credentials: _Watched) -> None:
    """Who points a program with its own credentials to an emulator does not send them there in plain text."""
    with (
        serving(by_attempt(None)) as server,
        HedgingPublisher(TOPIC, EAGER, credentials=credentials) as publisher,
    ):
        publisher.publish([b"x"]).result(PATIENCE)
        [record] = server.requests
    assert not {"authorization", "x-goog-iam-authorization-token"} & set(record.metadata)
    assert TOKEN not in str(record.metadata)
    assert credentials.used == []


def test_an_emulator_gets_no_credentials_that_were_given_to_a_sink(credentials: _Watched) -> None:
    """The same holds for a pipeline, on whose workers the credentials are copies."""
    with serving() as server:
        run_pipeline([b"x"], WriteToPubSubHedged(TOPIC, EAGER, credentials=credentials))
        close_publishers()
        [record] = server.requests
    assert TOKEN not in str(record.metadata)
    assert _Watched.used == []


def _names() -> set[str]:
    found = set(HedgingOptions([]).get_all_options(current_only=True))
    for kind in (HedgingPublisher, WriteToPubSubHedged):
        found |= set(inspect.signature(kind).parameters)
    return found


@pytest.mark.parametrize("word", ["insecure", "plain", "tls", "ssl", "verify", "anonymous"])
def test_there_is_no_setting_that_switches_tls_off(word: str) -> None:
    """Plain text is for an emulator that the environment names; no argument and no flag can ask for it."""
    assert [name for name in _names() if word in name.lower()] == []


@pytest.mark.parametrize("relay", [False, True])
def test_a_local_server_is_reached_from_its_own_address_only(*, relay: bool) -> None:
    """A server that a test starts on a shared machine is open to nobody else."""
    with LocalPubSub(relay=relay) as server:
        host, _, port = server.endpoint.partition(":")
        assert host == "127.0.0.1"
        socket.create_connection((host, int(port)), PATIENCE).close()
        # A server that listens on all addresses would answer here, too.
        with pytest.raises(OSError, match=r".*"):
            socket.create_connection(("127.0.0.2", int(port)), 1)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one loopback address only")
def test_a_local_server_can_be_opened_to_others() -> None:
    """In a container network a server listens on all addresses if it is told so, and only then."""
    with LocalPubSub(host="0.0.0.0") as server:  # noqa: S104 - what is tested
        _, _, port = server.endpoint.partition(":")
        socket.create_connection(("127.0.0.2", int(port)), PATIENCE).close()


@pytest.mark.parametrize("target", ["http://localhost:1", "dns:///localhost:1", "localhost:1", "localhost"])
def test_no_way_to_write_an_endpoint_makes_it_plain_text(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint says where, never how: each gets a channel with TLS and the credentials."""
    opened: list[dict[str, Any]] = []
    monkeypatch.setattr("grpc.aio.insecure_channel", lambda *_args, **_more: pytest.fail("in plain text"))
    monkeypatch.setattr(
        "google.api_core.grpc_helpers_async.create_channel", lambda **arguments: opened.append(arguments)
    )
    given = Credentials(token=TOKEN)
    make_channel_factory({"api_endpoint": target}, given)()
    assert [arguments["credentials"] for arguments in opened] == [given]
