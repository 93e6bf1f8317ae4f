"""Connection tracking's entries of datagrams, which would lead to endpoints that are gone: found and deleted
over netlink (ctnetlink). Streams are left: they end by themselves.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from podling.network.services import Backend
from podling.network.table import Stale
from podling.process.netlink import ACK, DUMP, REQUEST, answers, attribute, attributes, send

NETLINK_NETFILTER = 12
GET, DELETE = 1 << 8 | 1, 1 << 8 | 2
"""Messages of the subsystem ctnetlink."""
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
    for kind, body in answers(link):
        if kind == GET & 0xFF00 and (entry := read(body[4:])):
            yield entry


def _delete(link: socket.socket, family: int, entry: Entry) -> int:
    _send(link, DELETE, REQUEST | ACK, family, attribute(TUPLE_ORIGINAL | NESTED, entry.original))
    try:
        list(answers(link))
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        return 0
    return 1


def _send(link: socket.socket, kind: int, flags: int, family: int, given: bytes) -> None:
    send(link, kind, flags, struct.pack("=BBH", family, 0, 0) + given)


def read(message: memoryview) -> Entry | None:
    """An entry from its attributes; None for what is neither UDP nor SCTP."""
    tuples = dict(attributes(message))
    if TUPLE_ORIGINAL not in tuples or TUPLE_REPLY not in tuples:
        return None
    original = dict(attributes(tuples[TUPLE_ORIGINAL]))
    ports = dict(attributes(original[TUPLE_PROTOCOL]))
    protocol = PROTOCOLS.get(ports[NUMBER][0])
    if protocol is None:
        return None
    reply = dict(attributes(tuples[TUPLE_REPLY]))
    of_reply = dict(attributes(reply[TUPLE_PROTOCOL]))
    return Entry(
        protocol,
        _address(original[TUPLE_IP], DESTINATIONS),
        int.from_bytes(ports[DESTINATION_PORT], "big"),
        (_address(reply[TUPLE_IP], SOURCES), int.from_bytes(of_reply[SOURCE_PORT], "big")),
        bytes(tuples[TUPLE_ORIGINAL]),
    )


def _address(told: memoryview, kinds: tuple[int, int]) -> str:
    given = dict(attributes(told))
    return str(ipaddress.ip_address(bytes(given[kinds[0]] if kinds[0] in given else given[kinds[1]])))
