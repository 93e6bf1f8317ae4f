"""DNS messages as bytes (RFC 1035, 6891): names, records, and queries read from a packet.

A name is in wire form: labels, each after its length, and a last zero. Lower-casing one leaves lengths
as they are, because a length is at most 63 and letters begin at 65.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import NamedTuple

A, NS, CNAME, SOA, PTR, TXT, AAAA, SRV, OPT = 1, 2, 5, 6, 12, 16, 28, 33, 41
IXFR, AXFR, ANY = 251, 252, 255
TYPES = {
    A: "A",
    NS: "NS",
    CNAME: "CNAME",
    SOA: "SOA",
    PTR: "PTR",
    15: "MX",
    TXT: "TXT",
    AAAA: "AAAA",
    SRV: "SRV",
    35: "NAPTR",
    43: "DS",
    46: "RRSIG",
    47: "NSEC",
    48: "DNSKEY",
    64: "SVCB",
    65: "HTTPS",
    IXFR: "IXFR",
    AXFR: "AXFR",
    ANY: "ANY",
}
IN = 1
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED, BADVERS = 0, 1, 2, 3, 4, 5, 16
RCODES = {
    NOERROR: "NOERROR",
    FORMERR: "FORMERR",
    SERVFAIL: "SERVFAIL",
    NXDOMAIN: "NXDOMAIN",
    NOTIMP: "NOTIMP",
    REFUSED: "REFUSED",
    BADVERS: "BADVERS",
}
QR, AA, TC, RD, RA, CD = 0x8000, 0x0400, 0x0200, 0x0100, 0x0080, 0x0010
OPCODE, RCODE = 0x7800, 0x000F
DO = 0x8000
HEAD = 12
"""Bytes before the question."""
LONGEST_LABEL, LONGEST_NAME = 63, 255
SMALLEST, LARGEST = 512, 1232
"""Bytes of a datagram that every client takes, and that pass every network in one piece."""
LONGEST_MESSAGE = 65535
QUESTION_NAME = b"\xc0\x0c"
"""As the owner of a record: the name of the question, as it was asked."""
_NAMES = {
    NS: (0, 1, 0),
    CNAME: (0, 1, 0),
    PTR: (0, 1, 0),
    39: (0, 1, 0),
    15: (2, 1, 0),
    SRV: (6, 1, 0),
    SOA: (0, 2, 20),
}
"""Type → bytes before the names of its data, how many names, and bytes after them."""
_HEADER = struct.Struct(">HHHHHH")
_RECORD = struct.Struct(">HHIH")
_OPT = struct.Struct(">BHHBBHH")


class Malformed(ValueError):
    """A packet that is no query to answer: `rcode` says what to tell its sender; None is nothing. `question`
    is its question, where that could be read."""

    def __init__(self, rcode: int | None, question: bytes = b"") -> None:
        super().__init__(rcode)
        self.rcode = rcode
        self.question = question


class Query(NamedTuple):
    """One question. `question` is its bytes as asked (name, type, class), `name` its name in lower case.
    `size` is the largest datagram its sender takes; 0 is no EDNS."""

    id: bytes
    flags: int
    question: bytes
    name: bytes
    type: int
    cls: int
    size: int
    do: bool


class Record(NamedTuple):
    """A record of a message, with no pointers left in its names; `ttl` in seconds."""

    owner: bytes
    type: int
    cls: int
    ttl: int
    data: bytes

    def wire(self, ttl: int | None = None) -> bytes:
        ttl = self.ttl if ttl is None else ttl
        return self.owner + _RECORD.pack(self.type, self.cls, ttl, len(self.data)) + self.data


def encode(name: str) -> bytes:
    """Of a dotted name. Raises ValueError for one that is too long."""
    return join(label.encode() for label in name.rstrip(".").split(".") if label)


def join(labels: Iterable[bytes], below: bytes = b"\0") -> bytes:
    """The labels before the name `below`. Raises ValueError for what is too long."""
    parts = []
    for label in labels:
        if not 0 < len(label) <= LONGEST_LABEL:
            raise ValueError("a label has 1 to 63 bytes")
        parts.append(bytes((len(label),)) + label)
    name = b"".join(parts) + below
    if len(name) > LONGEST_NAME:
        raise ValueError("a name has at most 255 bytes")
    return name


def split(name: bytes) -> list[bytes]:
    """Its labels."""
    labels, at = [], 0
    while length := name[at]:
        labels.append(name[at + 1 : at + 1 + length])
        at += 1 + length
    return labels


def text(name: bytes) -> str:
    """Dotted, for people."""
    return ".".join(label.decode("latin-1") for label in split(name)) + "."


def is_below(name: bytes, zone: bytes) -> bool:
    """Whether a name is the zone's or in it."""
    if not name.endswith(zone):
        return False
    at, start = 0, len(name) - len(zone)
    while at < start:
        at += 1 + name[at]
    return at == start


def record(owner: bytes, type_: int, ttl: int, data: bytes) -> bytes:
    """A record of class IN; `ttl` in seconds."""
    return owner + _RECORD.pack(type_, IN, ttl, len(data)) + data


def header(id_: bytes, flags: int, questions: int, answers: int, authority: int, additional: int) -> bytes:
    return id_ + struct.pack(">HHHHH", flags, questions, answers, authority, additional)


def opt(rcode: int = 0, *, do: bool = False, size: int = LARGEST) -> bytes:
    """What a message with EDNS carries: `size` is the largest datagram its sender takes."""
    return _OPT.pack(0, OPT, size, rcode >> 4, 0, DO if do else 0, 0)


def reverse_name(address: str) -> bytes:
    """The name under which an address' PTR stands."""
    return encode(ip_address(address).reverse_pointer)


def read_name(message: bytes, at: int) -> tuple[bytes, int]:
    """The name that stands there, and where it ends; pointers only lead back. Raises Malformed."""
    labels, end, size, limit = [], 0, 1, at
    try:
        while length := message[at]:
            if length >= 0xC0:
                end = end or at + 2
                at = (length & 0x3F) << 8 | message[at + 1]
                if at >= limit:
                    raise Malformed(FORMERR)
                limit = at
                continue
            size += 1 + length
            if length > LONGEST_LABEL or size > LONGEST_NAME or at + 1 + length >= len(message):
                raise Malformed(FORMERR)
            labels.append(message[at : at + 1 + length])
            at += 1 + length
    except IndexError:
        raise Malformed(FORMERR) from None
    return b"".join(labels) + b"\0", end or at + 1


def records(message: bytes, at: int, count: int) -> Iterator[tuple[Record, int]]:
    """`count` records from there, and where each ends. The names in those of types that may be compressed are
    whole. Raises Malformed."""
    for _ in range(count):
        owner, at = read_name(message, at)
        if at + _RECORD.size > len(message):
            raise Malformed(FORMERR)
        type_, cls, ttl, length = _RECORD.unpack_from(message, at)
        at += _RECORD.size
        end = at + length
        if end > len(message):
            raise Malformed(FORMERR)
        data = message[at:end]
        if type_ in _NAMES:
            before, names, after = _NAMES[type_]
            whole, place = [message[at : at + before]], at + before
            for _ in range(names):
                name, place = read_name(message, place)
                whole.append(name)
            if place + after != end:
                raise Malformed(FORMERR)
            data = b"".join(whole) + message[place:end]
        at = end
        yield Record(owner, type_, cls, ttl, data), at


def read_query(message: bytes) -> Query:
    """What a client asks. Raises Malformed."""
    if len(message) < HEAD:
        raise Malformed(None)
    _, flags, questions, answers, authority, additional = _HEADER.unpack_from(message)
    if flags & QR:
        # Whoever answers answers goes round in circles.
        raise Malformed(None)
    if flags & OPCODE:
        raise Malformed(NOTIMP)
    if questions != 1 or answers or authority > 1 or additional > 2:
        raise Malformed(FORMERR)
    at = HEAD
    while (length := message[at] if at < len(message) else LONGEST_LABEL + 1) != 0:
        at += 1 + length
        if length > LONGEST_LABEL or at - HEAD >= LONGEST_NAME:
            raise Malformed(FORMERR)
    end = at + 5
    if end > len(message):
        raise Malformed(FORMERR)
    name = message[HEAD : at + 1].lower()
    type_, cls = struct.unpack_from(">HH", message, at + 1)
    size, do, version = 0, False, 0
    for number, (one, _) in enumerate(records(message, end, authority + additional)):
        if one.type != OPT or number < authority:
            continue
        if size or one.owner != b"\0":
            raise Malformed(FORMERR)
        size, version, do = max(one.cls, SMALLEST), one.ttl >> 16 & 0xFF, bool(one.ttl & DO)
    if version:
        raise Malformed(BADVERS, message[HEAD:end])
    return Query(message[:2], flags, message[HEAD:end], name, type_, cls, size, do)
