"""What other servers have answered, for as long as it may be repeated, and longer while they are away.

Pure: the time (`now`, in seconds) is an argument.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from typing import NamedTuple

from podling.dns.answers import Answer
from podling.dns.wire import (
    FORMERR,
    HEAD,
    NOERROR,
    NXDOMAIN,
    OPCODE,
    OPT,
    QR,
    QUESTION_NAME,
    RA,
    RCODE,
    SOA,
    TC,
    Malformed,
    Record,
    read_name,
    records,
)

MOST, MOST_BYTES = 10_000, 16 * 1024 * 1024
"""Answers that are kept, and bytes of their messages."""
LONGEST = 30.0
"""Seconds for which an answer is repeated, however much longer it may be."""
STALE, STALE_TTL = 3600.0, 30
"""Seconds for which one is kept beyond that, and the TTL it then has (RFC 8767)."""
AD = 0x0020
_TSIG = 250


class Asked(NamedTuple):
    """What one server was or is to be asked; `name` in lower case."""

    name: bytes
    type: int
    do: bool
    cd: bool


class Found(NamedTuple):
    """A server's reply: `flags` with its code, and the records of each section."""

    flags: int
    answers: tuple[Record, ...]
    authority: tuple[Record, ...]
    additional: tuple[Record, ...]
    size: int

    @property
    def rcode(self) -> int:
        return self.flags & RCODE

    def lifetime(self) -> float:
        """Seconds for which it may be repeated: for what is not there, as the zone's SOA says."""
        if self.rcode == NOERROR and self.answers:
            return min(LONGEST, *(record.ttl for record in self.answers))
        if self.rcode not in (NOERROR, NXDOMAIN):
            return 0.0
        for one in self.authority:
            if one.type == SOA:
                return min(LONGEST, one.ttl, int.from_bytes(one.data[-4:], "big"))
        return 0.0

    def answer(self, asked: Asked, age: float) -> Answer:
        """Of that age, in seconds, for who asked for just this."""
        sections = [
            [_aged(one, age, asked.name) for one in section]
            for section in (self.answers, self.authority, self.additional)
        ]
        flags = self.flags & AD | RA
        answers, authority, additional = sections
        return Answer(answers, additional, authority, rcode=self.rcode, flags=flags)

    def continued(self, begun: tuple[bytes, ...], age: float) -> Answer:
        """After records that lead to it."""
        return Answer([*begun, *(one.wire(_left(one, age)) for one in self.answers)])


def _aged(one: Record, age: float, name: bytes) -> bytes:
    if one.owner.lower() == name:
        one = one._replace(owner=QUESTION_NAME)
    return one.wire(_left(one, age))


def _left(one: Record, age: float) -> int:
    return STALE_TTL if age > one.ttl else one.ttl - int(age)


def read_reply(message: bytes, id_: bytes, asked: Asked) -> Found:
    """The reply to what was asked under that id. Raises Malformed for anything else."""
    if len(message) < HEAD or message[:2] != id_:
        raise Malformed(FORMERR)
    flags, questions, *counts = struct.unpack_from(">HHHHH", message, 2)
    if not flags & QR or flags & OPCODE or questions != 1:
        raise Malformed(FORMERR)
    name, at = read_name(message, HEAD)
    if name.lower() != asked.name or message[at : at + 2] != asked.type.to_bytes(2, "big"):
        raise Malformed(FORMERR)
    at += 4
    if flags & TC:
        return Found(flags, (), (), (), len(message))
    sections = []
    for count in counts:
        section = []
        for one, end in records(message, at, count):
            at = end
            if one.type not in (OPT, _TSIG):
                section.append(one)
        sections.append(tuple(section))
    answers, authority, additional = sections
    return Found(flags, answers, authority, additional, len(message))


class _Kept(NamedTuple):
    found: Found
    since: float
    until: float


class AnswerCache:
    """The longest unused make room."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Asked, _Kept] = OrderedDict()
        self._bytes = 0
        self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        self._kept.clear()
        self._bytes = 0

    def put(self, asked: Asked, found: Found, now: float) -> None:
        lifetime = found.lifetime()
        if lifetime <= 0:
            return
        self._drop(asked)
        self._kept[asked] = _Kept(found, now, now + lifetime)
        self._bytes += found.size
        while len(self._kept) > MOST or self._bytes > MOST_BYTES:
            self._drop(next(iter(self._kept)))

    def get(self, asked: Asked, now: float, *, stale: bool = False) -> tuple[Found, float] | None:
        """What was found, and its age in seconds; with `stale` also what is too old."""
        kept = self._kept.get(asked)
        if kept is not None and now >= kept.until + STALE:
            self._drop(asked)
            kept = None
        if kept is None or (now >= kept.until and not stale):
            self.misses += 1
            return None
        self.hits += 1
        self._kept.move_to_end(asked)
        return kept.found, now - kept.since

    def _drop(self, asked: Asked) -> None:
        kept = self._kept.pop(asked, None)
        if kept is not None:
            self._bytes -= kept.found.size
