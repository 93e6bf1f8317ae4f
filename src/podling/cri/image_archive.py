"""Reads image archives: what images are in one, and what each is made of. OCI layouts and docker archives, as
tar."""

from __future__ import annotations

import json
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_BROKEN = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError)
"""What reading a broken archive raises, besides OSError."""


class ImageArchiveError(Exception):
    """The file is no image archive, or lacks a part it names."""


class ImageArchive:
    """An open archive. Everything read from it may raise ImageArchiveError."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._members = {member.name.removeprefix("./"): member for member in tar.getmembers()}

    def names(self) -> list[str]:
        """The full references of the images in it, in its order; what has none is left out."""
        if "manifest.json" in self._members:
            images = self._json("manifest.json")
            return [name for image in images for name in image.get("RepoTags") or ()]
        annotations = [manifest.get("annotations", {}) for manifest in self._json("index.json")["manifests"]]
        return [a["io.containerd.image.name"] for a in annotations if "io.containerd.image.name" in a]

    def manifest(self) -> tuple[str, bytes]:
        """Media type and bytes of the first image's OCI manifest."""
        first = self._json("index.json")["manifests"][0]
        return first["mediaType"], self.blob(first["digest"])

    def blob(self, digest: str) -> bytes:
        return self._read(f"blobs/{digest.replace(':', '/')}")

    def _json(self, name: str) -> Any:
        try:
            return json.loads(self._read(name))
        except ValueError as error:
            raise ImageArchiveError(f"{name} of the image archive is not JSON: {error}") from error

    def _read(self, name: str) -> bytes:
        member = self._members.get(name)
        file: IO[bytes] | None = self._tar.extractfile(member) if member else None
        if file is None:
            raise ImageArchiveError(f"the image archive has no {name}")
        return file.read()


@contextmanager
def open_archive(path: Path) -> Iterator[ImageArchive]:
    """The archive at `path`, compressed or not. Raises ImageArchiveError, or OSError when it cannot be
    read."""
    try:
        with tarfile.open(path) as tar:
            yield ImageArchive(tar)
    except _BROKEN as error:
        raise ImageArchiveError(f"{path} is no image archive: {error}") from error
