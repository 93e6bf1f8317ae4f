"""Restoring a backup, all of it or nothing.

    unpacked and checked, in `restoring` ─▶ renamed to `restored` ─▶ moved into place
                                            from here on the next start finishes it

Revisions continue far above those of the backup, and the history is empty: clients that have read or watched
later writes are told to list again.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from podling.assemble.backup import FORMAT as ARCHIVE_FORMAT
from podling.assemble.backup import MANIFEST, Copied, Manifest
from podling.machine.instance import Instance
from podling.machine.start import DamagedError, StartError, finish_restore, hold, writing
from podling.storage.sqlite.backup import copy, go_on, look, newest_acknowledged
from podling.storage.sqlite.whole import DataFileError

__all__ = ["Copied", "accept_loss", "restore"]

_NAME = re.compile(r"state\.db|instance\.json|pki/[A-Za-z0-9][\w.-]{,100}")
_PUBLIC = (".crt", ".pub")
_PIECE = 1 << 20


def restore(instance: Instance, file: Path, *, force: bool) -> Copied:
    """Restore `file`. Raises StartError; then the data directory is as it was before."""

    def fill(staging: Path) -> Copied:
        (staging / "pki").mkdir(mode=0o700)
        try:
            with tarfile.open(file) as archive:
                _unpack(archive, staging)
            _sync(staging / "pki")
            return look(staging / instance.database.name)
        except (
            tarfile.TarError,
            EOFError,
            ValueError,
            KeyError,
            msgspec.MsgspecError,
            DataFileError,
        ) as error:
            raise DamagedError(f"{file} is not a whole backup: {error}; nothing was restored") from error

    with hold(instance), writing(instance.data_dir):
        instance.have_data_dir()
        if not force and (instance.database.exists() or instance.pki_dir.exists()):
            why = "they are lost when --force puts the backup in their place"
            raise StartError(f"{instance.data_dir} holds objects and keys already: {why}")
        return _go_on(instance, fill)


def accept_loss(instance: Instance) -> Copied:
    """Continue from the objects that are there, although later writes are lost. Raises StartError;
    DamagedError when an object that is there was changed."""

    def fill(staging: Path) -> Copied:
        try:
            return copy(instance.database, staging / instance.database.name, accept_loss=True)
        except DataFileError as error:
            raise DamagedError(str(error)) from error

    with hold(instance), writing(instance.data_dir):
        if not instance.database.exists():
            raise StartError(f"{instance.data_dir} holds no objects to go on from")
        return _go_on(instance, fill)


def _go_on(instance: Instance, fill: Callable[[Path], Copied]) -> Copied:
    """Continue from the files that `fill` puts into a directory: with all of them, or as before."""
    staging = instance.restoring_dir
    staging.mkdir()
    try:
        copied = fill(staging)
        database = staging / instance.database.name
        revision = go_on(database, newest_acknowledged(instance.database))
        for aside in (".lock", "-shm", "-wal"):
            database.with_name(database.name + aside).unlink(missing_ok=True)
        _sync(staging)
        staging.rename(instance.restored_dir)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    finish_restore(instance)
    _sync(instance.data_dir)
    return copied._replace(revision=revision)


def _unpack(archive: tarfile.TarFile, staging: Path) -> None:
    """Raises ValueError for content that is not in the manifest, or differs from it."""
    described = archive.extractfile(MANIFEST)
    if described is None:
        raise ValueError(f"its {MANIFEST} is no file")
    manifest = msgspec.json.decode(described.read(), type=Manifest)
    if manifest.format != ARCHIVE_FORMAT:
        raise ValueError(f"its format is {manifest.format}, this podling reads format {ARCHIVE_FORMAT}")
    if "state.db" not in manifest.files:
        raise ValueError("it holds no objects")
    for name, content in manifest.files.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is nothing that backups have")
        source, digest, size = archive.extractfile(name), hashlib.sha256(), 0
        if source is None:
            raise ValueError(f"{name} is no file")
        path = staging / name
        mode = 0o644 if path.suffix in _PUBLIC else 0o600
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            while piece := source.read(_PIECE):
                digest.update(piece)
                size += len(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if (size, digest.hexdigest()) != (content.size, content.sha256):
            raise ValueError(f"{name} is not as it was written")


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
