"""Events of the audit log that are too long: kube-apiserver's `--audit-log-truncate-…` and
`--audit-webhook-truncate-…`.
"""

from __future__ import annotations

from collections.abc import Awaitable

import msgspec

from podling.apiserver.observe.audit import Sink

TRUNCATED = "audit.k8s.io/truncated"
BODIES = ("requestObject", "responseObject")
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


def truncated(event: bytes, longest: int) -> bytes | None:
    """An event of at most so many bytes: without its bodies if it is longer with them; None if it is longer
    without."""
    if len(event) <= longest:
        return event
    fields = _fields.decode(event)
    for body in BODIES:
        fields.pop(body, None)
    notes: dict[str, str] = msgspec.json.decode(fields.get("annotations", b"{}"))
    short = msgspec.json.encode({**fields, "annotations": {**notes, TRUNCATED: "true"}})
    return short if len(short) <= longest else None


class Truncating:
    """A `Sink` that hands on what is not too long; the rest is lost."""

    def __init__(self, sink: Sink, longest: int) -> None:
        self.name, self.mode = sink.name, sink.mode
        self._sink = sink
        self._longest = longest
        self._too_long = 0

    @property
    def full(self) -> bool:
        return self._sink.full

    async def room(self) -> None:
        await self._sink.room()

    def kept(self) -> Awaitable[bool]:
        return self._sink.kept()

    def write(self, event: bytes) -> None:
        short = truncated(event, self._longest)
        if short is None:
            self._too_long += 1
        else:
            self._sink.write(short)

    @property
    def lost(self) -> int:
        return self._sink.lost + self._too_long

    @property
    def fault(self) -> str:
        return self._sink.fault
