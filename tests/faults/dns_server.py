"""A name server for one name, which can be out of order."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER_BYTES = 12
_RESPONSE, _SERVER_FAILURE = 0x8180, 2
_ADDRESS, _INTERNET = 1, 1
# Points to the name in the question.
_SAME_NAME = 0xC00C


class NameServer:
    """Answers that every name is this machine, or that it cannot tell.

    Owned by `name_server`, whose thread ends with the block.

    Args:
        listening: A UDP socket.

    Attributes:
        works: Whether it can tell.
        failed: How many questions it could not answer.
        port: Where it listens.
    """

    def __init__(self, listening: socket.socket) -> None:
        self._socket = listening
        self.works = False
        self.failed = 0
        self.port: int = listening.getsockname()[1]

    def serve(self) -> None:
        """Answers until the end, which an empty datagram tells."""
        while True:
            query, client = self._socket.recvfrom(4096)
            if not query:
                return
            self._socket.sendto(self._answer(query), client)

    def _answer(self, query: bytes) -> bytes:
        end = _HEADER_BYTES
        while query[end]:
            end += 1 + query[end]
        question = query[_HEADER_BYTES : end + 5]
        (kind,) = struct.unpack("!H", query[end + 1 : end + 3])
        found = self.works and kind == _ADDRESS
        self.failed += not self.works
        flags = _RESPONSE if self.works else _RESPONSE | _SERVER_FAILURE
        header = query[:2] + struct.pack("!5H", flags, 1, int(found), 0, 0)
        if not found:
            return header + question
        answer = struct.pack("!3HIH", _SAME_NAME, _ADDRESS, _INTERNET, 0, 4)
        return header + question + answer + socket.inet_aton("127.0.0.1")


@contextmanager
def name_server() -> Iterator[NameServer]:
    """Runs a name server that is out of order at first."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        server = NameServer(listening)
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            yield server
        finally:
            listening.sendto(b"", listening.getsockname())
            thread.join()
