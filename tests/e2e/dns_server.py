"""A DNS server for pods, as little of one as a resolver takes: addresses by name, over UDP."""

from __future__ import annotations

import socket
import struct
from socketserver import DatagramRequestHandler, UDPServer

DNS_PORT = 53
IP_FREEBIND = 15
A_RECORD = 1
AUTHORITATIVE_ANSWER, NO_SUCH_NAME = 0x8580, 3
"""Flags of an answer's head, and the code of one that has none."""
FIRST_NAME = 0xC00C
"""In a record: the name of the question."""


class Resolver(UDPServer):
    """`addresses` by name are what it knows; `asked` are who asked for what, in order."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.addresses: dict[str, str] = {}
        self.asked: list[tuple[str, str]] = []
        super().__init__((address, DNS_PORT), _Answer, bind_and_activate=False)
        # The address is the bridge's, which comes with the first pod.
        self.socket.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        self.server_bind()


class _Answer(DatagramRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Resolver)
        query = self.rfile.read()
        name, end = _question(query)
        self.server.asked.append((self.client_address[0], name))
        address = self.server.addresses.get(name)
        asked_for = int.from_bytes(query[end : end + 2], "big")
        answers = [socket.inet_aton(address)] if address and asked_for == A_RECORD else []
        flags = AUTHORITATIVE_ANSWER if address else AUTHORITATIVE_ANSWER | NO_SUCH_NAME
        head = query[:2] + struct.pack(">HHHHH", flags, 1, len(answers), 0, 0)
        records = [struct.pack(">HHHIH", FIRST_NAME, A_RECORD, 1, 1, 4) + answer for answer in answers]
        self.wfile.write(head + query[12 : end + 4] + b"".join(records))


def _question(query: bytes) -> tuple[str, int]:
    """The name that is asked for, and where it ends: its labels follow the head, each after its length."""
    labels, at = [], 12
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode())
        at += 1 + length
    return ".".join(labels), at + 1
