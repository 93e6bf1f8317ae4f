"""Questions to the kernel over netlink: messages, answers, attributes, for whoever knows what they mean."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

REQUEST, ACK, DUMP, CREATE = 1, 4, 0x300, 0x400
_ERROR, _DONE = 2, 3


def send(link: socket.socket, kind: int, flags: int, body: bytes) -> None:
    link.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)


def answers(link: socket.socket) -> Iterator[tuple[int, memoryview]]:
    """(type, body) of each message, to the last of a dump or the acknowledgement. Raises OSError for what the
    kernel says went wrong."""
    while True:
        data = memoryview(link.recv(1 << 20))
        while data:
            length, kind = struct.unpack_from("=IH", data)
            body, data = data[16:length], data[length + 3 & ~3 :]
            if kind == _DONE:
                return
            if kind == _ERROR:
                (code,) = struct.unpack_from("=i", body)
                if code:
                    raise OSError(-code, os.strerror(-code))
                return
            yield kind, body


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", len(value) + 4, kind) + value + b"\0" * (-len(value) % 4)


def attributes(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3FFF, data[4:length]
        data = data[length + 3 & ~3 :]
