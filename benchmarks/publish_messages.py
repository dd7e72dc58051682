"""Publish requests and responses as bytes: what a server has to know of them, at the least cost."""

from __future__ import annotations

import functools

# A byte that tells whether the message is compressed, and four of its length.
_PREFIX = 5
_MESSAGES = 0x12
_CONTINUED = 0x80
_NUMBER = b"########"


def count_messages(call: bytes) -> int:
    """Returns how many messages a publish request holds.

    Args:
        call: The encoded `PublishRequest`, with gRPC's prefix. All of its fields are strings or messages.
    """
    count, at, end = 0, _PREFIX, len(call)
    while at < end:
        count += call[at] == _MESSAGES
        length = call[at + 1]
        at += 2
        if length & _CONTINUED:
            length &= ~_CONTINUED
            shift = 7
            while True:
                more = call[at]
                at += 1
                length |= (more & ~_CONTINUED) << shift
                if not more & _CONTINUED:
                    break
                shift += 7
        at += length
    return count


def response(number: int, count: int) -> bytes:
    """Returns a publish response, with gRPC's prefix.

    Args:
        number: The number of the request, from which all ids begin.
        count: How many ids it holds.
    """
    return _template(count).replace(_NUMBER, b"%08d" % number)


@functools.lru_cache
def _template(count: int) -> bytes:
    ids = [_NUMBER + b"%04d" % each for each in range(count)]
    message = b"".join(b"\n" + bytes([len(each)]) + each for each in ids)
    return b"\0" + len(message).to_bytes(_PREFIX - 1, "big") + message
