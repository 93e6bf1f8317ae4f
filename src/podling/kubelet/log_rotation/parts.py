"""The files one log is in, and what is to be done with them. Pure.

0.log                        what is being written
0.log.20260102-030405        the part before it, as it was when it was rotated
0.log.20260102-020304.gz     older ones
0.log.20260102-030405.tmp    a part while it is compressed
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

import msgspec

COMPRESSED, UNFINISHED = ".gz", ".tmp"
_PART = re.compile(r"\.(\d{8}-\d{6})(\.gz|\.tmp)?")


def part_name(log: str, now: datetime) -> str:
    """Of what was written until `now`."""
    return f"{log}.{now:%Y%m%d-%H%M%S}"


def parts(log: str, names: Iterable[str]) -> list[str]:
    """Those of `names` that are older parts of the log, oldest first, each once: a part that is both plain
    and compressed was not removed yet."""
    found: dict[str, str] = {}
    for name in sorted(names):
        match = _PART.fullmatch(name.removeprefix(log)) if name.startswith(log) else None
        if match and match[2] != UNFINISHED:
            found[match[1]] = name
    return [found[moment] for moment in sorted(found)]


def moment_of(part: str) -> str:
    """What a part keeps of its name when it is compressed."""
    return part.removesuffix(COMPRESSED)


class Chores(msgspec.Struct, frozen=True):
    """What to do before another part is made."""

    remove: tuple[str, ...]
    compress: tuple[str, ...]


def chores(log: str, names: Iterable[str], max_files: int) -> Chores:
    """So that with the log itself and the part to come there are no more than `max_files`."""
    known = [name for name in names if name.startswith(log) and _PART.fullmatch(name.removeprefix(log))]
    all_parts = parts(log, known)
    kept = all_parts[max(len(all_parts) - max(max_files - 2, 0), 0) :]
    return Chores(
        remove=tuple(sorted(set(known) - set(kept))),
        compress=tuple(name for name in kept if not name.endswith(COMPRESSED)),
    )
