"""The table of mounts, from /proc/self/mountinfo (proc(5)).

Mount points are read as bytes and lines end only at newlines: a mount may be named in any encoding or none,
and the kernel escapes only space, tab, newline and backslash.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

MOUNTINFO = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(rb"\\([0-7]{3})")


class Mounted(NamedTuple):
    """A mount. `options` are those of the file system, not of the mount."""

    place: Path
    kind: str
    options: tuple[str, ...]


def read_mounts(table: Path = MOUNTINFO) -> list[Mounted]:
    """All mounts, in the order they were mounted. Raises OSError."""
    return [_mounted(line) for line in table.read_bytes().split(b"\n") if line]


def _mounted(line: bytes) -> Mounted:
    before, _, after = line.partition(b" - ")
    place = _ESCAPE.sub(lambda escaped: bytes((int(escaped[1], 8),)), before.split(b" ")[4])
    kind, _, options = os.fsdecode(after).split(" ", 2)
    return Mounted(Path(os.fsdecode(place)), kind, tuple(options.split(",")))
