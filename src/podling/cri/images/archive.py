"""Reads image archives (OCI layouts and docker archives, as tar) and loads them into a private containerd.

CRI cannot take an image from a file, so containerd's own tool `ctr` imports it, and CRI learns of it a moment
later from an event. `load_images` returns when a pod can use the images.
"""

from __future__ import annotations

import asyncio
import lzma
import tarfile
import zlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from podling.cri.grpc.client import GrpcRuntime
from podling.process.programs import ended

T = TypeVar("T")

LONGEST_DESCRIPTION = 4 * 1024 * 1024
"""Bytes of the index or manifest file, at most."""
_BROKEN = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError)
"""Exceptions that reading a broken archive raises, besides OSError."""
_NAMESPACE = "k8s.io"
_KNOWN_WITHIN = 10.0


class ImageArchiveError(Exception):
    """The file is no image archive, or lacks a part it names."""


class _DockerImage(msgspec.Struct):
    repo_tags: list[str] | None = msgspec.field(default=None, name="RepoTags")


class _Manifest(msgspec.Struct, rename="camel"):
    media_type: str = ""
    digest: str = ""
    annotations: dict[str, str] | None = None


class _Index(msgspec.Struct):
    manifests: list[_Manifest]


class ImageArchive:
    """An open archive. Everything read from it may raise ImageArchiveError, which names the file."""

    def __init__(self, path: Path, tar: tarfile.TarFile) -> None:
        self._path = path
        self._tar = tar
        self._members = {member.name.removeprefix("./"): member for member in tar.getmembers()}

    def names(self) -> list[str]:
        """The full references of the images in the archive, in its order. Images without a name are left
        out."""
        if "manifest.json" in self._members:
            images = self._decoded("manifest.json", list[_DockerImage])
            return [name for image in images for name in image.repo_tags or ()]
        if "index.json" not in self._members:
            why = "a tar with neither manifest.json nor index.json in it"
            raise ImageArchiveError(f"{self._path} is no image archive: {why}")
        named = [manifest.annotations or {} for manifest in self._decoded("index.json", _Index).manifests]
        return [a["io.containerd.image.name"] for a in named if "io.containerd.image.name" in a]

    def manifest(self) -> tuple[str, bytes]:
        """Media type and bytes of the first image's OCI manifest."""
        for first in self._decoded("index.json", _Index).manifests:
            return first.media_type, self.blob(first.digest)
        raise ImageArchiveError(f"{self._path} has no image in it")

    def blob(self, digest: str) -> bytes:
        return self._read(f"blobs/{digest.replace(':', '/')}")

    def _decoded(self, name: str, type_: type[T]) -> T:
        # A description is read whole; a layer may be as large as it likes, it is containerd's.
        if name in self._members and self._members[name].size > LONGEST_DESCRIPTION:
            raise ImageArchiveError(f"{name} in {self._path} is longer than {LONGEST_DESCRIPTION} bytes")
        try:
            return msgspec.json.decode(self._read(name), type=type_)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ImageArchiveError(f"{name} in {self._path} does not describe images: {error}") from error

    def _read(self, name: str) -> bytes:
        member = self._members.get(name)
        # What is a link would be followed in the archive, one to itself without end.
        file: IO[bytes] | None = self._tar.extractfile(member) if member and member.isreg() else None
        if file is None:
            raise ImageArchiveError(f"{self._path} is not whole: there is no {name} in it")
        return file.read()


@contextmanager
def open_archive(path: Path) -> Iterator[ImageArchive]:
    """The archive at `path`, compressed or not. Raises ImageArchiveError, or OSError when it cannot be
    read."""
    try:
        with tarfile.open(path) as tar:
            yield ImageArchive(path, tar)
    except tarfile.ReadError as error:
        # What Python says is how each way to read it failed.
        raise ImageArchiveError(f"{path} is no image archive: it is no tar, compressed or not") from error
    except _BROKEN as error:
        raise ImageArchiveError(f"{path} is damaged or cut short: {error}") from error


class ImageLoadError(Exception):
    """containerd did not import the archive; the message has its reason."""


async def load_images(
    socket: Path, archive: Path, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> list[str]:
    """Load every image of `archive` into the containerd at `socket`; returns their references.

    Raises ImageLoadError, or ImageArchiveError when the file is no archive.
    """
    with open_archive(archive) as opened:
        names = opened.names()
    await _import(socket, archive)
    runtime = GrpcRuntime(str(socket))
    try:
        async with asyncio.timeout(_KNOWN_WITHIN):
            for name in names:
                while await runtime.image_status(name) is None:
                    await sleep(0.005)
    except TimeoutError:
        raise ImageLoadError(f"containerd took {archive} but CRI does not know {name}") from None
    finally:
        await runtime.close()
    return names


async def _import(socket: Path, archive: Path) -> None:
    argv = ["ctr", "--address", str(socket), "--namespace", _NAMESPACE, "images", "import", str(archive)]
    try:
        ctr = await ended(*argv)
    except FileNotFoundError:
        raise ImageLoadError("there is no ctr on this machine: install the package containerd") from None
    if ctr.returncode != 0:
        said = ctr.stderr.decode(errors="replace").strip()
        raise ImageLoadError(f"containerd did not take {archive}: {said}")
