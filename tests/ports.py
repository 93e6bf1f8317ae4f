"""Ports that no other test is given, by this process or another, and none of the kernel's choice."""

from __future__ import annotations

import os
import socket
from itertools import count

HOST = "127.0.0.1"
FIRST, LAST = 10_500, 29_999
"""Below those the kernel gives to whoever asks for any, above a kubelet's, and no node ports."""
_STEP = 1009
"""Ports between the first ones of two processes whose ids are neighbours."""
_tried = count(os.getpid() * _STEP)


def free_port() -> int:
    """For a server that cannot be told to take any, over TCP or UDP; while it is none's, nobody answers."""
    stream, datagrams = both_of_one_port(HOST)
    with stream, datagrams:
        port: int = stream.getsockname()[1]
        return port


def both_of_one_port(host: str) -> tuple[socket.socket, socket.socket]:
    """A TCP and a UDP socket that are bound to the same port; the first does not listen yet."""
    while True:
        port = FIRST + next(_tried) % (LAST - FIRST + 1)
        stream, datagrams = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
        try:
            stream.bind((host, port))
            datagrams.bind((host, port))
        except OSError:
            stream.close()
            datagrams.close()
            continue
        return stream, datagrams
