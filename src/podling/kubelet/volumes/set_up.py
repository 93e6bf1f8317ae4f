"""Sets up every volume of a pod and tells where each is. Blocking file work: run it off the event loop.

All objects have been fetched before (`Objects`), so only the disk is waited for. `securityContext.fsGroup` is
applied here, once, before any container has the files, and by descriptor, so that a renamed file cannot be
confused with another. fsGroupChangePolicy concerns only volumes that outlive their pod: those of claims.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from podling.kubelet.files.descriptors import DIRECTORY, LOOK
from podling.kubelet.files.tree import mount_of, walk
from podling.kubelet.host.cgroups import limits_of_pod
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.volumes import atomic
from podling.kubelet.volumes.claimed import has_group, place_of
from podling.kubelet.volumes.files import Payload, VolumeError, config_map_payload, secret_payload
from podling.kubelet.volumes.host import (
    EMPTY_DIR_PLUGIN,
    make,
    make_in_memory,
    set_up_empty_dir,
    set_up_host_path,
)
from podling.kubelet.volumes.objects import Objects
from podling.kubelet.volumes.projections import ResourceValue, downward_api_payload, projected_payload
from podling.model.rules.volume_binding import BLOCK
from podling.model.types.persistent_volume import PersistentVolume
from podling.model.types.pod import Pod
from podling.model.types.volume import EmptyDirVolumeSource, Volume

_READ_WRITE = 0o660
_READ_ONLY = 0o440
_DIRECTORY = stat.S_ISGID | 0o110
IMAGE_PLUGIN = "image"
DEFAULT_MODE = 0o644
_IN_MEMORY = frozenset(("secret", "downward-api", "projected"))


def set_group(volume: Path, gid: int, *, read_only: bool = False) -> None:
    """Give the whole tree to the group, which may read and (unless `read_only`) write it. Directories get
    setgid, so that new files belong to the group, too. Raises OSError."""
    mode = _READ_ONLY if read_only else _READ_WRITE
    top = os.open(volume, DIRECTORY)
    try:
        mount = mount_of(top)
        for directory, name, _ in walk(top):
            found = os.open(name, LOOK, dir_fd=directory)
            try:
                if mount_of(found) != mount:
                    raise OSError(errno.EBUSY, "something is mounted there", name)
                if stat.S_ISLNK(os.fstat(found).st_mode):
                    os.chown(name, -1, gid, dir_fd=directory, follow_symlinks=False)
                else:
                    _set_found(found, gid, mode)
            finally:
                os.close(found)
        _set_found(top, gid, mode)
    finally:
        os.close(top)


def _set_found(found: int, gid: int, mode: int) -> None:
    path = f"/proc/self/fd/{found}"
    os.chown(path, -1, gid)
    state = os.fstat(found).st_mode
    os.chmod(path, stat.S_IMODE(state) | mode | (_DIRECTORY if stat.S_ISDIR(state) else 0))


class MountedVolume(msgspec.Struct, frozen=True):
    """A volume that is set up on the node."""

    path: Path
    read_only: bool = False
    """Mounted read-only, whatever the container's volumeMount says."""
    sealed: bool = False
    """The mount itself is read-only, nosuid, nodev and noexec. The container's mount is then not marked
    read-only, as the runtime's remount would drop the other flags."""
    device: bool = False
    """It is a block device, for `volumeDevices`."""


class SetUpError(VolumeError):
    """One volume of the pod failed; `volume` is its name."""

    def __init__(self, volume: str, message: str) -> None:
        super().__init__(f'MountVolume.SetUp failed for volume "{volume}" : {message}')
        self.volume = volume


class Layout(msgspec.Struct, frozen=True):
    """What setting up the volumes of one pod needs."""

    pod: Pod
    directory: PodDirectory
    objects: Objects
    resource_value: ResourceValue
    now: datetime
    memory: int
    """The node's allocatable memory in bytes."""
    ready: Mapping[str, MountedVolume] = msgspec.field(default_factory=dict)
    """By name, the volumes that drivers have set up."""

    @property
    def pod_memory(self) -> int:
        limit = limits_of_pod(self.pod).memory
        return self.memory if limit is None else min(limit, self.memory)

    @property
    def group(self) -> int | None:
        context = self.pod.spec.security_context
        return context.fs_group if context else None


def set_up_volumes(layout: Layout) -> dict[str, MountedVolume]:
    """By name. All are tried; raises SetUpError for those that cannot be set up, which a second call tries
    again."""
    return _each(layout.pod.spec.volumes, layout)


def update_volumes(layout: Layout) -> dict[str, MountedVolume]:
    """Update the files of configMap, secret, downwardAPI and projected volumes. A volume whose update fails
    keeps its files, and the others are still updated. Raises SetUpError for those that failed."""
    volumes = (
        volume
        for volume in layout.pod.spec.volumes
        if (volume.config_map, volume.secret, volume.downward_api, volume.projected) != (None,) * 4
    )
    return _each(volumes, layout)


def _each(volumes: Iterable[Volume], layout: Layout) -> dict[str, MountedVolume]:
    done: dict[str, MountedVolume] = {}
    failures: list[SetUpError] = []
    for volume in volumes:
        try:
            done[volume.name] = _set_up(volume, layout)
        except SetUpError as error:
            failures.append(error)
    if failures:
        first, *more = failures
        first.more = more
        raise first
    return done


def _set_up(volume: Volume, layout: Layout) -> MountedVolume:
    group = layout.group
    if (ready := layout.ready.get(volume.name)) is not None:
        return ready
    try:
        if volume.host_path is not None:
            return MountedVolume(set_up_host_path(volume.host_path))
        if volume.empty_dir is not None:
            return _empty_dir(volume.name, volume.empty_dir, layout)
        if volume.container is not None:
            return _empty_dir(volume.name, EmptyDirVolumeSource(), layout)
        if (claimed := layout.objects.volumes.get(volume.name)) is not None:
            return _claimed(volume, claimed, layout)
        if volume.image is not None:
            # Mounted when a container that mounts it is created, after its image was pulled.
            return MountedVolume(layout.directory.volume(IMAGE_PLUGIN, volume.name), read_only=True)
        plugin, payload = _payload(volume, layout)
        path = layout.directory.volume(plugin, volume.name)
        (make_in_memory if plugin in _IN_MEMORY else make)(path, group)
        own = None if group is None else partial(set_group, gid=group, read_only=True)
        atomic.write(path, payload, layout.now, own)
        return MountedVolume(path, read_only=True)
    # ValueError: a path with a zero byte, which an object may hold and no file's name can.
    except SetUpError:
        raise
    except (VolumeError, OSError, ValueError) as error:
        raise SetUpError(volume.name, str(error)) from error


def _payload(volume: Volume, layout: Layout) -> tuple[str, Payload]:
    """The plugin's name and the files of a volume made of files. Raises VolumeError."""
    pod, found, resource = layout.pod, layout.objects, layout.resource_value
    if (named := volume.config_map) is not None:
        mode = _mode(named.default_mode)
        return "configmap", config_map_payload(named, found.config_maps.get(named.name), mode)
    if (private := volume.secret) is not None:
        mode = _mode(private.default_mode)
        return "secret", secret_payload(private, found.secrets.get(private.secret_name), mode)
    if (facts := volume.downward_api) is not None:
        mode = _mode(facts.default_mode)
        return "downward-api", downward_api_payload(facts.items, pod, resource, mode)
    if (joined := volume.projected) is not None:
        mode = _mode(joined.default_mode)
        return "projected", projected_payload(joined.sources, found, pod, resource, mode)
    raise VolumeError("this kind of volume is not supported by this kubelet")


def _claimed(volume: Volume, claimed: PersistentVolume, layout: Layout) -> MountedVolume:
    """Named in messages as the volume is, not as the pod names it."""
    source, context = volume.persistent_volume_claim, layout.pod.spec.security_context
    mounted = MountedVolume(
        Path(),
        read_only=source is not None and source.read_only,
        device=claimed.spec.volume_mode == BLOCK,
    )
    try:
        mounted = replace(mounted, path=place_of(claimed))
        group = layout.group
        # As in Kubernetes, directories of the host keep their groups.
        if group is not None and claimed.spec.local is not None and not mounted.read_only | mounted.device:
            sparing = context is not None and context.fs_group_change_policy == "OnRootMismatch"
            if not sparing or not has_group(mounted.path, group):
                set_group(mounted.path, group)
    except (VolumeError, OSError, ValueError) as error:
        raise SetUpError(claimed.metadata.name, str(error)) from error
    return mounted


def _mode(given: int | None) -> int:
    return DEFAULT_MODE if given is None else given


def _empty_dir(name: str, source: EmptyDirVolumeSource, layout: Layout) -> MountedVolume:
    path = layout.directory.volume(EMPTY_DIR_PLUGIN, name)
    set_up_empty_dir(source, path, layout.pod_memory, layout.group)
    return MountedVolume(path)
