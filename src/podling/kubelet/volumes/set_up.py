"""Sets up every volume of a pod and says where each is. Blocking file work: run it off the event loop.

All that must be fetched has been fetched before (`Objects`), so this never waits for anything but the disk.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec

from podling.kubelet.cgroups.limits import limits_of_pod
from podling.kubelet.pod.pod_directories import PodDirectory
from podling.kubelet.volumes import (
    atomic,
    config_map,
    downward_api,
    empty_dir,
    host_path,
    image_volumes,
    projected,
    secret,
)
from podling.kubelet.volumes.downward_api import ResourceValue
from podling.kubelet.volumes.objects import Objects
from podling.kubelet.volumes.ownership import set_group
from podling.kubelet.volumes.payload import Payload, VolumeError
from podling.model.pod import Pod
from podling.model.volume import EmptyDirVolumeSource, Volume

DEFAULT_MODE = 0o644
_IN_MEMORY = frozenset(("secret", "downward-api", "projected"))


class MountedVolume(msgspec.Struct, frozen=True):
    """Where a volume is on the node. `read_only` volumes are mounted so whatever the container asks; one that
    is `sealed` cannot be written in any way, and must not be mounted anew: it would lose what else it is."""

    path: Path
    read_only: bool = False
    sealed: bool = False


class SetUpError(VolumeError):
    """One volume of the pod failed; `volume` is its name."""

    def __init__(self, volume: str, message: str) -> None:
        super().__init__(f'MountVolume.SetUp failed for volume "{volume}" : {message}')
        self.volume = volume


class Layout(msgspec.Struct, frozen=True):
    """What all volumes of one pod share while they are set up."""

    pod: Pod
    directory: PodDirectory
    objects: Objects
    resource_value: ResourceValue
    now: datetime
    memory: int
    """Bytes the node has for all pods."""

    @property
    def pod_memory(self) -> int:
        limit = limits_of_pod(self.pod).memory
        return self.memory if limit is None else min(limit, self.memory)

    @property
    def group(self) -> int | None:
        context = self.pod.spec.security_context
        return context.fs_group if context else None


def set_up_volumes(layout: Layout) -> dict[str, MountedVolume]:
    """Raises SetUpError for the first volume that cannot be set up; calling again goes on from there."""
    return {volume.name: _set_up(volume, layout) for volume in layout.pod.spec.volumes}


def update_volumes(layout: Layout) -> dict[str, MountedVolume]:
    """Make those volumes that are made of files hold what they should now; what fails is left as it is and
    keeps no other from its update. Raises SetUpError for the first that failed."""
    updated: dict[str, MountedVolume] = {}
    failures = []
    for volume in layout.pod.spec.volumes:
        if _is_of_files(volume):
            try:
                updated[volume.name] = _set_up(volume, layout)
            except SetUpError as error:
                failures.append(error)
    if failures:
        raise failures[0]
    return updated


def _is_of_files(volume: Volume) -> bool:
    kinds = (volume.config_map, volume.secret, volume.downward_api, volume.projected)
    return any(kind is not None for kind in kinds)


def _set_up(volume: Volume, layout: Layout) -> MountedVolume:
    try:
        return _by_kind(volume, layout)
    # ValueError: a path with a zero byte, which an object may hold and no file's name can.
    except (VolumeError, OSError, ValueError) as error:
        raise SetUpError(volume.name, str(error)) from error


def _by_kind(volume: Volume, layout: Layout) -> MountedVolume:
    if volume.host_path is not None:
        return MountedVolume(host_path.set_up(volume.host_path))
    if volume.empty_dir is not None:
        return _empty_dir(volume.name, volume.empty_dir, layout)
    if volume.container is not None:
        return _empty_dir(volume.name, EmptyDirVolumeSource(), layout)
    if volume.image is not None:
        # Its files are there once a container that mounts it has seen to the image.
        return MountedVolume(layout.directory.volume(image_volumes.PLUGIN, volume.name), read_only=True)
    plugin, payload = _payload(volume, layout)
    return _files(layout.directory.volume(plugin, volume.name), payload, layout, plugin in _IN_MEMORY)


def _payload(volume: Volume, layout: Layout) -> tuple[str, Payload]:
    """The plugin a volume made of files belongs to, and its files."""
    pod, found, resource = layout.pod, layout.objects, layout.resource_value
    if (named := volume.config_map) is not None:
        mode = _mode(named.default_mode)
        return "configmap", config_map.payload(named, found.config_maps.get(named.name), mode)
    if (private := volume.secret) is not None:
        mode = _mode(private.default_mode)
        return "secret", secret.payload(private, found.secrets.get(private.secret_name), mode)
    if (facts := volume.downward_api) is not None:
        mode = _mode(facts.default_mode)
        return "downward-api", downward_api.payload(facts.items, pod, resource, mode)
    if (joined := volume.projected) is not None:
        mode = _mode(joined.default_mode)
        return "projected", projected.payload(joined.sources, found, pod, resource, mode)
    raise VolumeError("this kind of volume is not supported by this kubelet")


def _mode(given: int | None) -> int:
    return DEFAULT_MODE if given is None else given


def _empty_dir(name: str, source: EmptyDirVolumeSource, layout: Layout) -> MountedVolume:
    path = layout.directory.volume(empty_dir.PLUGIN, name)
    empty_dir.set_up(source, path, layout.pod_memory, layout.group)
    return MountedVolume(path)


def _files(path: Path, payload: Payload, layout: Layout, in_memory: bool) -> MountedVolume:
    (empty_dir.make_in_memory if in_memory else empty_dir.make)(path, layout.group)
    own = None if layout.group is None else partial(set_group, gid=layout.group, read_only=True)
    atomic.write(path, payload, layout.now, own)
    return MountedVolume(path, read_only=True)
