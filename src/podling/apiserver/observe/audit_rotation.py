"""Rotation of the audit log's file: kube-apiserver's `--audit-log-maxsize`, `-maxbackup` and `-maxage`, with
its names for old files, `audit-2026-01-02T03-04-05.678.log`, in UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

_FORMAT = "%Y-%m-%dT%H-%M-%S.%f"


class Rotation(NamedTuple):
    """The bounds; 0 means no bound."""

    max_bytes: int = 100 << 20
    backups: int = 100
    age: timedelta = timedelta(days=366)

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
        if not old.exists():
            break
        now += timedelta(milliseconds=1)
    path.rename(old)
    kept = sorted(backups(path), reverse=True)
    too_many = kept[rotation.backups :] if rotation.backups else []
    too_old = [backup for backup in kept if rotation.age and backup.rotated < now - rotation.age]
    for backup in {*too_many, *too_old}:
        backup.path.unlink()


def backups(path: Path) -> Iterator[Backup]:
    """The backups of the log at `path`; other files beside it do not match their names."""
    prefix = f"{path.stem}-"
    for file in path.parent.iterdir():
        if file.name.startswith(prefix) and file.suffix == path.suffix:
            try:
                rotated = datetime.strptime(file.stem.removeprefix(prefix), _FORMAT).replace(tzinfo=UTC)
            except ValueError:
                continue
            yield Backup(rotated, file)
