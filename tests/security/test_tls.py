"""Without an emulator all goes over TLS, to a service that proves who it is; the token goes nowhere else."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.security.certificates import self_signed
from tests.security.client import run_client
from tests.security.client_program import PAYLOAD, TOKEN, TOPIC
from tests.security.secure_server import secure_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The first bytes of TLS: a handshake record.
_HANDSHAKE = b"\x16\x03"


def test_a_service_that_is_trusted_gets_messages_and_the_token(tmp_path: Path) -> None:
    """A user's messages reach the service as the user: with a token, on the original and on the hedge."""
    certificate = self_signed()
    with secure_server(certificate) as server:
        server.stalled = 1
        result = run_client(tmp_path, server.endpoint, trusts=certificate)
    assert result["hedges"] >= 1
    assert len(server.calls) >= 2
    for metadata, data in server.calls:
        assert metadata["authorization"] == f"Bearer {TOKEN}"
        assert metadata["x-goog-request-params"] == f"topic={TOPIC}"
        assert data == [PAYLOAD]


def test_a_pipeline_publishes_over_tls_with_the_token(tmp_path: Path) -> None:
    """The sink's credentials survive the way to the worker, and are used there."""
    certificate = self_signed()
    with secure_server(certificate) as server:
        run_client(tmp_path, server.endpoint, "beam", trusts=certificate)
    [(metadata, data)] = server.calls
    assert (metadata["authorization"], data) == (f"Bearer {TOKEN}", [PAYLOAD])


def test_a_service_that_nobody_vouches_for_gets_nothing(tmp_path: Path) -> None:
    """Whoever stands between a worker and the service learns neither messages nor the token."""
    with secure_server(self_signed()) as server:
        result = run_client(tmp_path, server.endpoint, "in vain")
    assert result["status"] == "UNAVAILABLE"
    assert server.calls == []


def test_a_service_with_another_name_gets_nothing(tmp_path: Path) -> None:
    """A certificate that is good, but for another host, is not good enough."""
    certificate = self_signed("pubsub.example.com")
    with secure_server(certificate) as server:
        result = run_client(tmp_path, server.endpoint, "in vain", trusts=certificate)
    assert result["status"] == "UNAVAILABLE"
    assert server.calls == []


def test_a_client_certificate_is_shown_to_the_service(tmp_path: Path) -> None:
    """Where an organisation asks for mutual TLS, the client library's own options switch it on."""
    certificate, mine = self_signed(), self_signed("worker")
    with secure_server(certificate, clients=mine.chain) as server:
        assert run_client(tmp_path, server.endpoint, "in vain", trusts=certificate)["status"] == "UNAVAILABLE"
        assert server.calls == []
        assert "hedges" in run_client(tmp_path, server.endpoint, trusts=certificate, shows=mine)
    assert len(server.calls) >= 1


@contextmanager
def _listener() -> Iterator[tuple[int, list[bytes]]]:
    """Runs a server that takes down what it is sent, and says nothing."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def listen() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    heard.append(connection.recv(65_536))

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield listening.getsockname()[1], heard
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_nothing_is_sent_in_plain_text(tmp_path: Path) -> None:
    """A service that speaks no TLS is not spoken to: there is no setting that would."""
    with _listener() as (port, heard):
        result = run_client(tmp_path, f"localhost:{port}", "in vain")
    assert result["status"] in ("UNAVAILABLE", "DEADLINE_EXCEEDED")
    assert heard
    assert all(first.startswith(_HANDSHAKE) for first in heard)
    assert TOKEN.encode() not in b"".join(heard)
    assert PAYLOAD not in b"".join(heard)
