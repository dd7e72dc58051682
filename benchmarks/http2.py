"""As much of HTTP/2 as a server needs that answers every gRPC call alike.

Headers are neither read nor remembered: all calls are publish calls, and that is why this costs a small part
of what a general server costs. Only clients that never pad frames are served; gRPC's do not.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

_FRAME = struct.Struct(">HBBBL")
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _WINDOW_UPDATE = 0x0, 0x1, 0x3, 0x4, 0x6, 0x8
_ACK = _END_STREAM = 0x1
_END_HEADERS, _PADDED = 0x4, 0x8
_INITIAL_WINDOW_SIZE, _MAX_FRAME_SIZE = 0x4, 0x5
_WINDOW = 2**31 - 1
_DEFAULT_WINDOW = 65_535
# A client may have this much more under way before it hears that its bytes have been read.
_TOP_UP = 2**29


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Returns an HTTP/2 frame."""
    length = len(payload)
    return _FRAME.pack(length >> 8, length & 0xFF, kind, flags, stream) + payload


_GREETING = frame(
    _SETTINGS, 0, 0, struct.pack(">HLHL", _INITIAL_WINDOW_SIZE, _WINDOW, _MAX_FRAME_SIZE, 2**24 - 1)
) + frame(_WINDOW_UPDATE, 0, 0, struct.pack(">L", _WINDOW - _DEFAULT_WINDOW))
# ":status: 200" and the name of content-type stand in HPACK's static table.
_RESPONSE_HEADERS = b"\x88\x0f\x10\x10application/grpc"
_TRAILERS = b"\x00\x0bgrpc-status\x010"


class Http2Connection:
    """The server's end of one connection: bytes in, calls out, answers in, bytes out.

    Args:
        write: Takes the bytes for the client.
        on_call: Called with the number of a stream and its gRPC message, framed, once it is complete.
        on_reset: Called with the number of a stream that the client has given up.
    """

    def __init__(
        self,
        write: Callable[[bytes], object],
        on_call: Callable[[int, bytes], object],
        on_reset: Callable[[int], object],
    ) -> None:
        self._write = write
        self._on_call = on_call
        self._on_reset = on_reset
        self._buffer = bytearray()
        self._greeted = False
        self._bodies: dict[int, list[bytes]] = {}
        self._unacknowledged = 0
        self._window = _DEFAULT_WINDOW
        self._waiting: deque[tuple[int, bytes]] = deque()
        # What is answered while bytes are read goes out in one write.
        self._out: list[bytes] | None = None
        write(_GREETING)

    def receive(self, data: bytes) -> None:
        """Takes bytes of the client.

        Raises:
            ValueError: This is not HTTP/2, or a frame is padded.
        """
        self._buffer += data
        self._out = []
        try:
            self._read()
        finally:
            out, self._out = self._out, None
            if out:
                self._write(b"".join(out))

    def answer(self, stream: int, message: bytes) -> None:
        """Answers a call with success.

        Args:
            stream: The number of its stream.
            message: A gRPC message, framed.
        """
        if len(message) > self._window:
            self._waiting.append((stream, message))
            return
        self._window -= len(message)
        self._send(
            frame(_HEADERS, _END_HEADERS, stream, _RESPONSE_HEADERS)
            + frame(_DATA, 0, stream, message)
            + frame(_HEADERS, _END_HEADERS | _END_STREAM, stream, _TRAILERS)
        )

    def _send(self, data: bytes) -> None:
        if self._out is None:
            self._write(data)
        else:
            self._out.append(data)

    def _read(self) -> None:
        buffer, at = self._buffer, 0
        if not self._greeted:
            if len(buffer) < len(PREFACE):
                return
            if not buffer.startswith(PREFACE):
                raise ValueError(f"not HTTP/2: {bytes(buffer[:24])!r}")
            self._greeted = True
            at = len(PREFACE)
        while len(buffer) - at >= _FRAME.size:
            high, low, kind, flags, stream = _FRAME.unpack_from(buffer, at)
            begin = at + _FRAME.size
            end = begin + (high << 8) + low
            if len(buffer) < end:
                break
            self._take(kind, flags, stream, bytes(memoryview(buffer)[begin:end]))
            at = end
        del buffer[:at]

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind in (_DATA, _HEADERS):
            if flags & _PADDED:
                raise ValueError("padded frames are not served")
            self._take_data(flags, stream, payload if kind == _DATA else b"")
        elif kind == _RST_STREAM:
            self._bodies.pop(stream, None)
            self._on_reset(stream)
        elif kind == _WINDOW_UPDATE and stream == 0:
            self._window += int.from_bytes(payload, "big")
            waiting, self._waiting = self._waiting, deque()
            for each in waiting:
                self.answer(*each)
        elif kind in (_SETTINGS, _PING) and not flags & _ACK:
            self._send(frame(kind, _ACK, 0, payload if kind == _PING else b""))

    def _take_data(self, flags: int, stream: int, data: bytes) -> None:
        if data:
            self._unacknowledged += len(data)
            if self._unacknowledged > _TOP_UP:
                self._send(frame(_WINDOW_UPDATE, 0, 0, struct.pack(">L", self._unacknowledged)))
                self._unacknowledged = 0
        if not flags & _END_STREAM:
            if data:
                self._bodies.setdefault(stream, []).append(data)
            return
        body = self._bodies.pop(stream, None)
        self._on_call(stream, data if body is None else b"".join((*body, data)))
