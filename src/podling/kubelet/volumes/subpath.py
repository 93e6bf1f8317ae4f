"""`subPath` of a volume mount: one file or directory inside a volume, bound where no later link can move it.

The path is resolved inside the volume before it is mounted; a link that leads out of it is refused.
"""

from __future__ import annotations

from pathlib import Path

from podling.kubelet.volumes.mounts import bind_mount
from podling.kubelet.volumes.payload import VolumeError


def resolve(volume: Path, sub_path: str) -> Path:
    """The real path of `sub_path` in the volume; a directory is made when nothing is there.

    Raises VolumeError when it would leave the volume."""
    root = volume.resolve()
    target = (root / sub_path).resolve()
    if target != root and root not in target.parents:
        raise VolumeError(f"subpath {target} not within volume path {root}")
    if not target.exists():
        target.mkdir(mode=0o750, parents=True)
        _open_as_volume(root, target)
    return target


def mount(volume: Path, sub_path: str, place: Path, mounted: bool) -> Path:
    """Bind the resolved path at `place`; a file is bound on a file."""
    target = resolve(volume, sub_path)
    if mounted:
        return place
    place.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    if target.is_dir():
        place.mkdir(mode=0o750, exist_ok=True)
    else:
        place.touch(mode=0o640, exist_ok=True)
    bind_mount(target, place, recursive=True)
    return place


def _open_as_volume(root: Path, target: Path) -> None:
    """What was made for a pod that runs as some user is as open as its volume is."""
    mode = root.stat().st_mode & 0o7777
    while target != root:
        target.chmod(mode)
        target = target.parent
