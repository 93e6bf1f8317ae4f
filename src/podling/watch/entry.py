"""One object as it stands in the cache: its stored bytes once, and what is made of them on demand.

The stored bytes have no resourceVersion: it is put in here, right after the `"metadata":{` that every stored
object has, by copying bytes (a fifth of a microsecond), never by decoding. The bytes are the store's own, so
that a cache costs the memory of its index only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

RECENT = 1_000
"""Decoded objects kept of a resource: decoding again takes microseconds, keeping all much memory."""

_METADATA = b'"metadata":{'
_EMPTY = ord("}")


def splice(value: bytes, revision: int) -> bytes:
    """Stored bytes as they are read: with `revision` as resourceVersion."""
    seam = _seam(value)
    return value[:seam] + _resource_version(value, seam, revision) + value[seam:]


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
        """The object as a GET answers it, with its resourceVersion."""
        return self.at(self.revision)

    @property
    def item(self) -> bytes:
        """The object as it stands in a list: without kind and apiVersion."""
        value, seam = self.value, self._seam
        return b'{"metadata":{' + _resource_version(value, seam, self.revision) + value[seam:]

    @property
    def object(self) -> Any:
        if self._object is None:
            self._object = self._decoder.decode(self)
        return self._object

    def at(self, revision: int) -> bytes:
        """The object with another resourceVersion: that of its deletion."""
        value, seam = self.value, self._seam
        return value[:seam] + _resource_version(value, seam, revision) + value[seam:]

    def forget_object(self) -> None:
        self._object = None


def _seam(value: bytes) -> int:
    return value.index(_METADATA) + len(_METADATA)


def _resource_version(value: bytes, seam: int, revision: int) -> bytes:
    return (
        b'"resourceVersion":"%d"' % revision
        if value[seam] == _EMPTY
        else b'"resourceVersion":"%d",' % revision
    )


class Decoder:
    """Decodes entries and has the longest decoded forget their objects."""

    def __init__(self, decode: Callable[[bytes], Any], keep: int = RECENT) -> None:
        self._decode = decode
        self._keep = keep
        self._recent: deque[Entry] = deque()

    def decode(self, entry: Entry) -> Any:
        if len(self._recent) == self._keep:
            self._recent.popleft().forget_object()
        self._recent.append(entry)
        return self._decode(entry.data)
