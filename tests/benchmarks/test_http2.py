"""The little HTTP/2 that the benchmarks' server speaks, byte by byte."""

from __future__ import annotations

import pytest

from benchmarks.http2 import PREFACE, Http2Connection, frame

DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8


class Client:
    """A connection, and what the server's end of it has said and understood."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.calls: list[tuple[int, bytes]] = []
        self.resets: list[int] = []
        self.server = Http2Connection(
            self.written.append, lambda *call: self.calls.append(call), self.resets.append
        )
        self.server.receive(PREFACE)
        self.written.clear()


def test_a_call_is_understood_however_it_is_cut() -> None:
    """A benchmark counts a request once, whatever pieces TCP and HTTP/2 make of it."""
    client = Client()
    sent = (
        frame(SETTINGS, 0, 0)
        + frame(HEADERS, 4, 5, b"whatever")
        + frame(DATA, 0, 5, b"one ")
        + frame(HEADERS, 4, 7, b"whatever")
        + frame(DATA, 0, 5, b"call")
        + frame(DATA, 1, 7, b"another")
        + frame(DATA, 1, 5)
    )
    for byte in sent:
        client.server.receive(bytes([byte]))
    assert client.calls == [(7, b"another"), (5, b"one call")]


def test_settings_and_pings_are_acknowledged() -> None:
    """A client that asks whether the server is alive hears that it is, and is not told twice."""
    client = Client()
    client.server.receive(frame(SETTINGS, 0, 0) + frame(PING, 0, 0, b"12345678") + frame(SETTINGS, 1, 0))
    assert client.written == [frame(SETTINGS, 1, 0) + frame(PING, 1, 0, b"12345678")]


def test_answers_wait_for_room() -> None:
    """However many answers are due at once, no client is sent more than it has room for."""
    client = Client()
    big = b"x" * 40_000
    client.server.answer(1, big)
    client.server.answer(3, big)
    assert len(client.written) == 1
    client.server.receive(frame(WINDOW_UPDATE, 0, 0, (40_000).to_bytes(4, "big")))
    assert len(client.written) == 2
    assert big in client.written[1]


def test_a_call_that_is_given_up_is_told() -> None:
    """A hedge's loser is not answered any more, and its bytes are not kept."""
    client = Client()
    client.server.receive(frame(DATA, 0, 5, b"half") + frame(RST_STREAM, 0, 5, b"\0\0\0\x08"))
    assert client.resets == [5]
    client.server.receive(frame(DATA, 1, 5, b"rest"))
    assert client.calls == [(5, b"rest")]


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", PREFACE + frame(DATA, 8, 1, b"\1x\0")]
)
def test_what_is_not_understood_is_refused(sent: bytes) -> None:
    """A client that this server cannot serve gets an end, and not silence."""
    server = Http2Connection(lambda _data: None, lambda *_call: None, lambda _stream: None)
    with pytest.raises(ValueError, match=r"not HTTP/2|padded"):
        server.receive(sent)
