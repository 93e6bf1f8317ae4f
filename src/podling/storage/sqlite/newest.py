"""The newest acknowledged revision, in a small file of its own beside the data file.

Writes that SQLite has not yet moved from its write-ahead log into the data file are lost with that log, and
SQLite reports nothing: it takes a missing or damaged log for a shorter one. So the store notes the revision
after each group of writes, and a data file that ends before the noted revision has lost writes.

The note is a store to shared memory: no fsync and no system call, for which the thread would release Python's
interpreter lock. It survives a kill of the process. After a power failure it may be older than the data file,
never newer, because it is made after the group's fsync.
"""

from __future__ import annotations

import mmap
import os
import zlib
from pathlib import Path
from struct import Struct

SLOTS = 2
"""Slots written in turn, because a kill may leave one half written."""

_SLOT = Struct("<QI4x")


class Newest:
    def __init__(self, path: Path) -> None:
        """Raises OSError, FileNotFoundError first of all; ValueError for a file that was damaged."""
        descriptor = os.open(path, os.O_RDWR)
        try:
            self._memory = mmap.mmap(descriptor, SLOTS * _SLOT.size)
        finally:
            os.close(descriptor)
        found = [self._read(slot) for slot in range(SLOTS)]
        noted = [revision for revision in found if revision is not None]
        if not noted:
            raise ValueError("neither of its two copies is whole")
        self.revision = max(noted)
        self._next = (found.index(self.revision) + 1) % SLOTS

    @classmethod
    def make(cls, path: Path) -> Newest:
        """A new file with revision 0, durable on return."""
        partial = path.with_name(f"{path.name}.new")
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            # Written, not left a hole: a store to memory must not have to find room on the disk.
            os.write(descriptor, _slot(0) * SLOTS)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        partial.replace(path)
        return cls(path)

    def note(self, revision: int) -> None:
        start = self._next * _SLOT.size
        self._memory[start : start + _SLOT.size] = _slot(revision)
        self.revision = revision
        self._next = (self._next + 1) % SLOTS

    def close(self) -> None:
        self._memory.flush()
        self._memory.close()

    def _read(self, slot: int) -> int | None:
        start = slot * _SLOT.size
        found = self._memory[start : start + _SLOT.size]
        revision: int = _SLOT.unpack(found)[0]
        return revision if found == _slot(revision) else None


def _slot(revision: int) -> bytes:
    return _SLOT.pack(revision, zlib.crc32(revision.to_bytes(8, "little")))
