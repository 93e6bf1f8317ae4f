"""One object in the cache: its stored bytes once, and the forms that are made of them on demand.

The stored bytes have no resourceVersion. It is inserted here, after the `"metadata":{` that every stored
object has, by copying bytes (a fifth of a microsecond), never by decoding. The bytes object is the storage's
own, so a cache costs only the memory of its index.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

RECENT = 1_000
"""Decoded objects kept for each resource. Decoding again takes microseconds; keeping all would take much
memory.
"""

_METADATA = b'"metadata":{'
_EMPTY = ord("}")


def splice(value: bytes, revision: int) -> bytes:
    """Stored bytes with `revision` inserted as resourceVersion."""
    return _spliced(value, _seam(value), revision)


class Entry:
    """An object at one revision; never changes. `value` is as stored, `object` must not be modified."""

    __slots__ = ("_decoder", "_object", "_seam", "key", "revision", "value")

    def __init__(self, key: str, revision: int, value: bytes, decoder: Decoder) -> None:
        self.key = key
        self.revision = revision
        self.value = value
        self._seam = _seam(value)
        self._decoder = decoder
        self._object: Any | None = None

    @property
    def data(self) -> bytes:
        """The object's JSON as a GET answers it, with its resourceVersion."""
        return _spliced(self.value, self._seam, self.revision)

    def item(self) -> tuple[bytes, memoryview]:
        """The object's JSON as an item of a list, without kind and apiVersion: two pieces, to be joined."""
        value, seam = self.value, self._seam
        return b'{"metadata":{' + _resource_version(value, seam, self.revision), memoryview(value)[seam:]

    @property
    def object(self) -> Any:
        # Looked at once: the loop may have it forgotten while a thread asks.
        obj = self._object
        if obj is None:
            obj = self._object = self._decoder.decode(self)
        return obj

    def at(self, revision: int) -> bytes:
        """The object's JSON with another resourceVersion: that of its deletion."""
        return _spliced(self.value, self._seam, revision)

    def know_object(self, obj: Any) -> None:
        """Spares decoding: `obj` is what `data` was encoded from, and nobody will modify it."""
        if self._object is None:
            self._decoder.keep(self)
            self._object = obj

    def forget_object(self) -> None:
        self._object = None


def items(entries: Iterable[Entry]) -> list[bytes | memoryview]:
    """The pieces between the brackets of a list's `"items":[]`.

    The caller joins all pieces of a list at once: copying each object on the way would cost several times as
    much.
    """
    pieces: list[bytes | memoryview] = []
    for entry in entries:
        pieces += entry.item()
        pieces.append(b",")
    return pieces[:-1]


def _seam(value: bytes) -> int:
    return value.index(_METADATA) + len(_METADATA)


def _spliced(value: bytes, seam: int, revision: int) -> bytes:
    comma = b"" if value[seam] == _EMPTY else b","
    return b'%b"resourceVersion":"%d"%b%b' % (value[:seam], revision, comma, value[seam:])


def _resource_version(value: bytes, seam: int, revision: int) -> bytes:
    return (
        b'"resourceVersion":"%d"' % revision
        if value[seam] == _EMPTY
        else b'"resourceVersion":"%d",' % revision
    )


class Decoder:
    """Decodes entries, and drops the decoded objects of the entries that were decoded longest ago."""

    def __init__(self, decode: Callable[[bytes], Any], keep: int = RECENT) -> None:
        self._decode = decode
        self._keep = keep
        self._recent: deque[Entry] = deque()

    def decode(self, entry: Entry) -> Any:
        self.keep(entry)
        return self._decode(entry.data)

    def keep(self, entry: Entry) -> None:
        if len(self._recent) == self._keep:
            self._recent.popleft().forget_object()
        self._recent.append(entry)
