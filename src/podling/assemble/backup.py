"""A backup: the files of a data directory that cannot be made again, in one archive.

Those are the objects, the certificates and keys, and the chosen port and subnet. Images, containers, logs and
the files of pods belong to a node and are not in it.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
from datetime import datetime
from pathlib import Path

import msgspec

from podling import __version__
from podling.machine.instance import Instance
from podling.machine.start import DamagedError, StartError, writing
from podling.model.time import SystemClock
from podling.storage.sqlite.backup import Copied, copy
from podling.storage.sqlite.whole import DamagedFileError, DataFileError

__all__ = ["MANIFEST", "Content", "Copied", "Manifest", "back_up"]

MANIFEST = "manifest.json"
FORMAT = 1


class Content(msgspec.Struct, frozen=True):
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """The first member of the archive. `files` are the other members, by path in the data directory."""

    format: int
    podling: str
    made: datetime
    revision: int
    files: dict[str, Content]


def back_up(instance: Instance, file: Path) -> Copied:
    """Write the backup `file`, whole or not at all; a podling may run meanwhile. Raises StartError."""
    if not instance.database.exists():
        raise StartError(f"{instance.data_dir} holds no objects of a podling")
    if not file.parent.is_dir():
        raise StartError(f"there is no directory {file.parent}")
    if instance.restored_dir.exists():
        raise StartError(f"a restore of {instance.data_dir} was cut short: the next start finishes it")
    with (
        writing(file.parent),
        tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as folder,
    ):
        database = Path(folder, instance.database.name)
        try:
            copied = copy(instance.database, database)
        except DamagedFileError as error:
            raise DamagedError(str(error)) from error
        except DataFileError as error:
            raise StartError(str(error)) from error
        files = {database.name: database}
        for kept in (instance.choices_file, *sorted(instance.pki_dir.glob("*.*"))):
            if kept.exists() and kept.suffix != ".new":
                files[str(kept.relative_to(instance.data_dir))] = kept
        archive = Path(folder, "archive")
        _write(archive, files, copied)
        archive.replace(file)
    return copied


def _write(archive: Path, files: dict[str, Path], copied: Copied) -> None:
    contents = {}
    for name, path in files.items():
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        contents[name] = Content(path.stat().st_size, digest)
    manifest = Manifest(FORMAT, __version__, SystemClock().now(), copied.revision, contents)
    descriptor = os.open(archive, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w+b") as written:
        with tarfile.open(fileobj=written, mode="w") as tar:
            described = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
            member = tarfile.TarInfo(MANIFEST)
            member.size, member.mode = len(described), 0o600
            tar.addfile(member, io.BytesIO(described))
            for name, path in files.items():
                tar.add(path, name, recursive=False)
        written.flush()
        os.fsync(written.fileno())
