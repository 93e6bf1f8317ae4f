"""The checksum of a row of the log: a row that the disk returns changed is noticed when it is read."""

from __future__ import annotations

import zlib

# What zlib is given in pieces no larger it reads without giving up Python's interpreter lock, which a thread
# gets back from a busy event loop only after the loop's turn.
_PIECE = 5 * 1024


def checksum(revision: int, key: str, previous: int, value: bytes | None) -> int:
    """CRC-32 of the whole row."""
    found = zlib.crc32(f"{revision} {previous} {'-' if value is None else '+'} {key} ".encode())
    if value is None:
        return found
    if len(value) <= _PIECE:
        return zlib.crc32(value, found)
    view = memoryview(value)
    for start in range(0, len(value), _PIECE):
        found = zlib.crc32(view[start : start + _PIECE], found)
    return found
