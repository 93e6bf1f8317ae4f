"""Builds container images from files, without a tool or a registry: the pause image, and the images of demos
and tests.

An image is one tar archive that is both an OCI image layout (containerd, skopeo, umoci) and a docker archive
(`docker load`). The same files give the same bytes everywhere: no times, no owners, layers uncompressed.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "riscv64": "riscv64"}
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"


class Symlink(msgspec.Struct, frozen=True):
    """A file of an image that points to `target`."""

    target: str


File = bytes | Path | Symlink


class ImageConfig(msgspec.Struct, frozen=True):
    """How an image runs; fields are those of the OCI image configuration."""

    entrypoint: Sequence[str] = ()
    cmd: Sequence[str] = ()
    env: Sequence[str] = ()
    user: str = ""
    working_dir: str = ""
    labels: Mapping[str, str] | None = None
    stop_signal: str = ""

    def as_oci(self) -> dict[str, Any]:
        """The `config` of an OCI image configuration; fields that are empty are left out."""
        fields = {
            "User": self.user,
            "Env": list(self.env),
            "Entrypoint": list(self.entrypoint),
            "Cmd": list(self.cmd),
            "WorkingDir": self.working_dir,
            "Labels": dict(self.labels or {}),
            "StopSignal": self.stop_signal,
        }
        return {name: value for name, value in fields.items() if value}


def build_image(reference: str, files: Mapping[str, File], config: ImageConfig) -> bytes:
    """The archive of an image of one layer, named `reference` in full: `docker.io/library/busybox:1`.

    `files` maps paths in the image to contents, to a file to copy, or to a link. Contents given as bytes may
    be executed, as may what is copied from a file that may. A path that ends with `/` is an empty directory
    for everyone.
    """
    layer = _tar(files)
    described = _json(
        {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": config.as_oci(),
            "rootfs": {"type": "layers", "diff_ids": [digest_of(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, described),
            "layers": [_descriptor(_LAYER, layer)],
        }
    )
    return _tar(
        {
            "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
            "index.json": _index(reference, manifest),
            "manifest.json": _json(
                [{"Config": _blob(described), "RepoTags": [reference], "Layers": [_blob(layer)]}]
            ),
            **{_blob(blob): blob for blob in (layer, described, manifest)},
        }
    )


def pause_image(reference: str, catatonit: Path) -> bytes:
    """The image of a pod's sandbox: a static program that reaps zombies and waits (`catatonit -P`)."""
    return build_image(reference, {"pause": catatonit}, ImageConfig(entrypoint=["/pause", "-P"]))


def digest_of(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _index(reference: str, manifest: bytes) -> bytes:
    names = {
        "io.containerd.image.name": reference,
        "org.opencontainers.image.ref.name": reference.rpartition(":")[2],
    }
    described = {**_descriptor(_MANIFEST, manifest), "annotations": names}
    return _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [described]})


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest_of(blob), "size": len(blob)}


def _blob(blob: bytes) -> str:
    return digest_of(blob).replace("sha256:", "blobs/sha256/")


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _tar(files: Mapping[str, File]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        made: set[str] = set()
        for path, file in sorted(files.items()):
            parents = [str(parent) for parent in PurePosixPath(path).parents]
            for parent in reversed(parents[:-1]):
                _add_directory(tar, parent, 0o755, made)
            if path.endswith("/"):
                _add_directory(tar, path.rstrip("/"), 0o1777, made)
            else:
                _add_file(tar, path, file)
    return archive.getvalue()


def _add_directory(tar: tarfile.TarFile, path: str, mode: int, made: set[str]) -> None:
    if path in made:
        return
    made.add(path)
    entry = tarfile.TarInfo(path)
    entry.type, entry.mode = tarfile.DIRTYPE, mode
    tar.addfile(entry)


def _add_file(tar: tarfile.TarFile, path: str, file: File) -> None:
    entry = tarfile.TarInfo(path)
    entry.mode = 0o755
    if isinstance(file, Symlink):
        entry.type, entry.linkname = tarfile.SYMTYPE, file.target
        tar.addfile(entry)
        return
    if isinstance(file, Path):
        entry.mode = 0o755 if file.stat().st_mode & 0o111 else 0o644
        file = file.read_bytes()
    entry.size = len(file)
    tar.addfile(entry, io.BytesIO(file))
