"""Answers as bytes, made once and given to everyone who asks: what follows the question in a reply, and the
heads before it.

A record's owner is a pointer to the question, so a reply repeats the name in the letters it was asked in.
"""

from __future__ import annotations

from collections.abc import Sequence

from podling.dns.wire import (
    AA,
    CD,
    CNAME,
    HEAD,
    LARGEST,
    LONGEST_MESSAGE,
    NOERROR,
    OPCODE,
    QR,
    QUESTION_NAME,
    RCODE,
    RD,
    SMALLEST,
    TC,
    Malformed,
    Query,
    header,
    opt,
    record,
)

_COPIED = RD | CD
"""The flags of a query that its reply repeats."""


class Answer:
    """The records of a reply, in their sections. `step` is the length of each of its answers if they are all
    as long and may come in any order, else 0."""

    __slots__ = ("_additional", "_answers", "_authority", "_from", "body", "counts", "flags", "heads", "step")

    def __init__(
        self,
        answers: Sequence[bytes] = (),
        additional: Sequence[bytes] = (),
        authority: Sequence[bytes] = (),
        *,
        rcode: int = NOERROR,
        flags: int = AA,
        rotates: bool = False,
    ) -> None:
        self.flags = QR | flags | rcode
        self._answers, self._additional = answers, additional
        self.step = len(answers[0]) if rotates and len(answers) > 1 else 0
        self._from = 0
        self.set_authority(authority)

    def set_authority(self, authority: Sequence[bytes]) -> None:
        self._authority = authority
        self.body = b"".join((*self._answers, *authority, *self._additional))
        self.counts = answers, servers, more = len(self._answers), len(authority), len(self._additional)
        self.heads = tuple(
            header(b"", self.flags | rd, 1, answers, servers, more + opts)
            for rd in (0, RD)
            for opts in (0, 1)
        )
        """What follows the id: without and with RD, each without and with EDNS."""

    @property
    def rcode(self) -> int:
        return self.flags & 0x0F

    def reply(self, query: Query, limit: int) -> bytes:
        """The whole reply, or as many records as there is room for in `limit` bytes: of the additional ones
        first, and with the flag TC once answers are left out."""
        end = b"" if not query.size else opt(do=query.do)
        flags = self.flags | query.flags & _COPIED
        counts, body = self.counts, self.turned()
        room = limit - HEAD - len(query.question) - len(end)
        if len(body) > room:
            counts, body, flags = self._cut(room, flags)
        answers, authority, additional = counts
        head = header(query.id, flags, 1, answers, authority, additional + bool(end))
        return head + query.question + body + end

    def turned(self) -> bytes:
        """The body; where answers may come in any order, another is the first each time."""
        if not self.step:
            return self.body
        self._from = (self._from + self.step) % (self.step * self.counts[0])
        end = self.step * self.counts[0]
        return self.body[self._from : end] + self.body[: self._from] + self.body[end:]

    def by_alias(self, target: bytes) -> Answer:
        """What this says of `target`, for a question of another name: one with answers is an alias of it."""
        answers, additional, authority = self._answers, self._additional, self._authority
        if self.step:
            self._from = (self._from + self.step) % (self.step * self.counts[0])
            first = self._from // self.step
            answers = [*answers[first:], *answers[:first]]
        own = [one.startswith(QUESTION_NAME) for one in answers]
        made = [target + one[2:] if is_own else one for one, is_own in zip(answers, own, strict=True)]
        if True in own:
            ttl = int.from_bytes(answers[own.index(True)][6:10], "big")
            made.insert(0, record(QUESTION_NAME, CNAME, ttl, target))
        return Answer(made, additional, authority, rcode=self.rcode, flags=self.flags & ~(QR | RCODE))

    def _cut(self, room: int, flags: int) -> tuple[tuple[int, int, int], bytes, int]:
        kept: list[bytes] = []
        counts = [0, 0, 0]
        for number, section in enumerate((self._answers, self._authority, self._additional)):
            for one in section:
                if len(one) > room:
                    if number < 2:
                        flags |= TC
                    room = -1
                    break
                room -= len(one)
                kept.append(one)
                counts[number] += 1
        return (counts[0], counts[1], counts[2]), b"".join(kept), flags


def limit(query: Query, *, is_stream: bool) -> int:
    """The bytes a reply may have."""
    if is_stream:
        return LONGEST_MESSAGE
    return min(query.size, LARGEST) if query.size else SMALLEST


def failure(query: Query, rcode: int) -> bytes:
    """A reply with no records, that only says what went wrong."""
    return Answer(rcode=rcode, flags=0).reply(query, LONGEST_MESSAGE)


def rejection(message: bytes, fault: Malformed) -> bytes | None:
    """The reply to what could not be read as a query; None is no reply."""
    if fault.rcode is None:
        return None
    flags = QR | int.from_bytes(message[2:4], "big") & (OPCODE | _COPIED) | fault.rcode & RCODE
    end = opt(fault.rcode) if fault.rcode > RCODE else b""
    questions = 1 if fault.question else 0
    return header(message[:2], flags, questions, 0, 0, 1 if end else 0) + fault.question + end
