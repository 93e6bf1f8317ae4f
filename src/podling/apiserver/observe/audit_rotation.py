"""Rotation of the audit log's file: kube-apiserver's `--audit-log-maxsize`, `-maxbackup`, `-maxage` and
`-compress`, with its names for old files, `audit-2026-01-02T03-04-05.678.log`, in UTC.
"""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

PACKED = ".gz"
_FORMAT = "%Y-%m-%dT%H-%M-%S.%f"


class Rotation(NamedTuple):
    """The bounds; 0 means no bound."""

    max_bytes: int = 100 << 20
    backups: int = 100
    age: timedelta = timedelta(days=366)
    compress: bool = False

    def is_due(self, size: int, more: int) -> bool:
        """Whether a file of `size` bytes must be rotated before `more` bytes are written."""
        return bool(self.max_bytes and size and size + more > self.max_bytes)


class Backup(NamedTuple):
    rotated: datetime
    path: Path


def rotate(path: Path, rotation: Rotation, now: datetime) -> None:
    """Rename the file at `path` to that of a backup, and remove backups that are too many or too old. Raises
    OSError."""
    while True:
        old = path.with_name(f"{path.stem}-{now.strftime(_FORMAT)[:-3]}{path.suffix}")
        # Two within a millisecond must not become one.
        if not (old.exists() or old.with_name(f"{old.name}{PACKED}").exists()):
            break
        now += timedelta(milliseconds=1)
    path.rename(old)
    if rotation.compress:
        _compress(old)
    kept = sorted(backups(path), reverse=True)
    too_many = kept[rotation.backups :] if rotation.backups else []
    too_old = [backup for backup in kept if rotation.age and backup.rotated < now - rotation.age]
    for backup in {*too_many, *too_old}:
        backup.path.unlink()


def _compress(old: Path) -> None:
    """The file is gone only when all of it is compressed."""
    packed = old.with_name(f"{old.name}{PACKED}")
    with (
        old.open("rb") as plain,
        open(os.open(packed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file) as writer,
    ):
        shutil.copyfileobj(plain, writer)
    old.unlink()


def backups(path: Path) -> Iterator[Backup]:
    """The backups of the log at `path`; other files beside it do not match their names."""
    prefix = f"{path.stem}-"
    for file in path.parent.iterdir():
        name = file.name.removesuffix(PACKED)
        if name.startswith(prefix) and name.endswith(path.suffix):
            when = name.removeprefix(prefix).removesuffix(path.suffix)
            try:
                rotated = datetime.strptime(when, _FORMAT).replace(tzinfo=UTC)
            except ValueError:
                continue
            yield Backup(rotated, file)
