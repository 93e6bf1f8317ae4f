"""Connection tracking's entries of datagrams, which would lead to endpoints that are gone: found and deleted
over netlink (ctnetlink). Streams are left: they end by themselves.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from podling.network.services import Backend
from podling.network.table import Stale

NETLINK_NETFILTER = 12
GET, DELETE = 1 << 8 | 1, 1 << 8 | 2
"""Messages of the subsystem ctnetlink."""
REQUEST, ACK, DUMP = 1, 4, 0x300
ERROR, DONE = 2, 3
TUPLE_ORIGINAL, TUPLE_REPLY = 1, 2
TUPLE_IP, TUPLE_PROTOCOL = 1, 2
SOURCES, DESTINATIONS = (1, 3), (2, 4)
"""The attributes of addresses: of IPv4, of IPv6."""
NUMBER, SOURCE_PORT, DESTINATION_PORT = 1, 2, 3
NESTED = 0x8000
PROTOCOLS = {17: "udp", 132: "sctp"}
FAMILIES = {"IPv4": socket.AF_INET, "IPv6": socket.AF_INET6}


class Entry(NamedTuple):
    """Where a client sent its packets, from where they are answered, and the original tuple as bytes."""

    protocol: str
    address: str
    port: int
    backend: Backend
    original: bytes


def is_stale(entry: Entry, change: Stale) -> bool:
    frontend = change.frontend
    if (entry.protocol, entry.port) != (frontend.protocol, frontend.port):
        return False
    if frontend.address and entry.address != frontend.address:
        return False
    if change.whole:
        # Of a node's port, only what no proxy has led anywhere: others have such ports, too.
        is_own = bool(frontend.address) or entry.backend == (entry.address, entry.port)
        return is_own and entry.backend not in change.backends
    return entry.backend in change.backends


def forget(changes: Sequence[Stale]) -> int:
    """Delete what these changes have made wrong; returns how many entries. Raises OSError."""
    deleted = 0
    for family in {change.frontend.family for change in changes}:
        of_family = [change for change in changes if change.frontend.family == family]
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as link:
            link.bind((0, 0))
            found = [
                entry
                for entry in _entries(link, FAMILIES[family])
                if any(is_stale(entry, change) for change in of_family)
            ]
            for entry in found:
                deleted += _delete(link, FAMILIES[family], entry)
    return deleted


def _entries(link: socket.socket, family: int) -> Iterator[Entry]:
    _send(link, GET, REQUEST | DUMP, family, b"")
    for kind, body in _answers(link):
        if kind == GET & 0xFF00 and (entry := read(body[4:])):
            yield entry


def _delete(link: socket.socket, family: int, entry: Entry) -> int:
    attribute = struct.pack("=HH", len(entry.original) + 4, TUPLE_ORIGINAL | NESTED) + entry.original
    _send(link, DELETE, REQUEST | ACK, family, attribute)
    try:
        list(_answers(link))
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        return 0
    return 1


def _send(link: socket.socket, kind: int, flags: int, family: int, attributes: bytes) -> None:
    body = struct.pack("=BBH", family, 0, 0) + attributes
    link.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)


def _answers(link: socket.socket) -> Iterator[tuple[int, memoryview]]:
    """(type, body) of each message, to the last. Raises OSError for what the kernel says went wrong."""
    while True:
        data = memoryview(link.recv(1 << 20))
        while data:
            length, kind = struct.unpack_from("=IH", data)
            body, data = data[16:length], data[length + 3 & ~3 :]
            if kind == DONE:
                return
            if kind == ERROR:
                (code,) = struct.unpack_from("=i", body)
                if code:
                    raise OSError(-code, os.strerror(-code))
                return
            yield kind, body


def read(message: memoryview) -> Entry | None:
    """An entry from its attributes; None for what is neither UDP nor SCTP."""
    tuples = dict(_attributes(message))
    if TUPLE_ORIGINAL not in tuples or TUPLE_REPLY not in tuples:
        return None
    original = dict(_attributes(tuples[TUPLE_ORIGINAL]))
    ports = dict(_attributes(original[TUPLE_PROTOCOL]))
    protocol = PROTOCOLS.get(ports[NUMBER][0])
    if protocol is None:
        return None
    reply = dict(_attributes(tuples[TUPLE_REPLY]))
    of_reply = dict(_attributes(reply[TUPLE_PROTOCOL]))
    return Entry(
        protocol,
        _address(original[TUPLE_IP], DESTINATIONS),
        int.from_bytes(ports[DESTINATION_PORT], "big"),
        (_address(reply[TUPLE_IP], SOURCES), int.from_bytes(of_reply[SOURCE_PORT], "big")),
        bytes(tuples[TUPLE_ORIGINAL]),
    )


def _address(attributes: memoryview, kinds: tuple[int, int]) -> str:
    given = dict(_attributes(attributes))
    return str(ipaddress.ip_address(bytes(given[kinds[0]] if kinds[0] in given else given[kinds[1]])))


def _attributes(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3FFF, data[4:length]
        data = data[length + 3 & ~3 :]
