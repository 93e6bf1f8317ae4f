"""`subPath` of a volume mount: a file or directory of a volume, bound where no later link can move it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from podling.kubelet.volumes.mounts import bind_mount, unmount
from podling.kubelet.volumes.payload import VolumeError
from podling.kubelet.volumes.within import opened


def check(sub_path: str) -> None:
    """What an expression may have become. Raises VolumeError."""
    if sub_path.startswith("/"):
        raise VolumeError(f"error SubPath `{sub_path}` must not be an absolute path")
    if ".." in sub_path.split("/"):
        raise VolumeError(f"unable to provision SubPath `{sub_path}`: must not contain '..'")


def mount(volume: Path, sub_path: str, place: Path) -> Path:
    """Bind what is at the path now at `place`; what an earlier instance had there stays if it is the same.

    Raises VolumeError when the path leaves the volume, and OSError."""
    with opened(volume, sub_path) as source:
        wanted = os.fstat(source)
        if _is_at(place, wanted):
            return place
        _clear(place)
        place.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        if stat.S_ISDIR(wanted.st_mode):
            place.mkdir(mode=0o750)
        else:
            place.touch(mode=0o640)
        # By its descriptor: by now its name may be another's.
        bind_mount(f"/proc/self/fd/{source}", place, recursive=True)
    return place


def _is_at(place: Path, wanted: os.stat_result) -> bool:
    try:
        found = place.stat()
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino)


def _clear(place: Path) -> None:
    """An empty file or directory, once nothing is mounted on it any more."""
    unmount(place)
    if place.is_dir():
        place.rmdir()
    else:
        place.unlink(missing_ok=True)
