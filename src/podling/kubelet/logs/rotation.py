"""Log rotation: every ten seconds the kubelet checks the sizes of the logs of running containers.

rename the log ▸ the runtime opens a new one ▸ the next time: compress the part, remove the oldest

0.log                        being written
0.log.20260102-030405        the part before it, named by the time it was rotated
0.log.20260102-020304.gz     older parts
0.log.20260102-030405.tmp    a part while it is compressed

Between the rename and the reopening the runtime still writes to the renamed file, so nothing is lost. inotify
would report every write; checking sizes periodically costs less.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, NoReturn

import msgspec

from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.config import KubeletConfig
from podling.kubelet.files.descriptors import open_regular
from podling.model.time import Clock

COMPRESSED, UNFINISHED = ".gz", ".tmp"
_PART = re.compile(r"\.(\d{8}-\d{6})(\.gz|\.tmp)?")

log = logging.getLogger(__name__)


def part_name(log: str, now: datetime) -> str:
    """The name for a part that is rotated at `now`."""
    return f"{log}.{now:%Y%m%d-%H%M%S}"


def parts(log: str, names: Iterable[str]) -> list[str]:
    """Those of `names` that are older parts of the log, oldest first. A part that exists plain and compressed
    (its plain file is about to be removed) is listed once."""
    found: dict[str, str] = {}
    for name in sorted(names):
        match = _PART.fullmatch(name.removeprefix(log)) if name.startswith(log) else None
        if match and match[2] != UNFINISHED:
            found[match[1]] = name
    return [found[moment] for moment in sorted(found)]


def moment_of(part: str) -> str:
    """The part's name without `.gz`, which identifies it before and after it is compressed."""
    return part.removesuffix(COMPRESSED)


class Chores(msgspec.Struct, frozen=True):
    """What to do before another part is made."""

    remove: tuple[str, ...]
    compress: tuple[str, ...]


def chores(log: str, names: Iterable[str], max_files: int) -> Chores:
    """What keeps the log, its parts and the next part within `max_files` (containerLogMaxFiles)."""
    known = [name for name in names if name.startswith(log) and _PART.fullmatch(name.removeprefix(log))]
    all_parts = parts(log, known)
    kept = all_parts[max(len(all_parts) - max(max_files - 2, 0), 0) :]
    return Chores(
        remove=tuple(sorted(set(known) - set(kept))),
        compress=tuple(name for name in kept if not name.endswith(COMPRESSED)),
    )


class WrittenLog(NamedTuple):
    """The log of a container that runs."""

    container_id: str
    path: Path


class LogRotator:
    """Rotates the logs that `written` lists. `run()` it."""

    def __init__(
        self,
        config: KubeletConfig,
        runtime: Runtime,
        clock: Clock,
        written: Callable[[], Iterable[WrittenLog]],
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._clock = clock
        self._written = written

    async def run(self) -> NoReturn:
        while True:
            await asyncio.sleep(self._config.log_rotation_interval.total_seconds())
            await self.look()

    async def look(self) -> None:
        """Check all logs once. A failure is logged, and retried at the next check."""
        for written in list(self._written()):
            if size(written.path) < self._config.log_max_bytes:
                continue
            try:
                await self._rotate(written)
            except (OSError, RuntimeFault) as error:
                log.warning("log %s is not rotated: %s", written.path, error)

    async def _rotate(self, written: WrittenLog) -> None:
        path = written.path
        await asyncio.to_thread(clean, path, self._config.log_max_files)
        part = path.with_name(part_name(path.name, self._clock.now()))
        if part.exists():
            return
        path.rename(part)
        try:
            await self._runtime.reopen_container_log(written.container_id)
        except RuntimeFault:
            if not path.exists():
                part.rename(path)
            raise


def size(path: Path) -> int:
    """0 of a log that is not there."""
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def clean(path: Path, max_files: int) -> None:
    """Remove the oldest parts and compress those that stay. Raises OSError."""
    todo = chores(path.name, os.listdir(path.parent), max_files)
    for name in todo.remove:
        path.with_name(name).unlink(missing_ok=True)
    for name in todo.compress:
        compress(path.with_name(name))


def compress(part: Path) -> None:
    """The compressed part is there whole or not at all."""
    unfinished = part.with_name(part.name + UNFINISHED)
    # What has the name is not written into: it may be a link.
    unfinished.unlink(missing_ok=True)
    with open_regular(part) as plain, gzip.open(unfinished, "xb") as compressed:
        shutil.copyfileobj(plain, compressed)
    shutil.copystat(part, unfinished, follow_symlinks=False)
    unfinished.rename(part.with_name(part.name + COMPRESSED))
    part.unlink()
