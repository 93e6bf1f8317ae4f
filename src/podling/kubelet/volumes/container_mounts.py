"""The mounts of one container: its volumeMounts, /etc/hosts, and the termination message file.

A subPath is bind-mounted to a place of the kubelet's own before the container starts, so that a symbolic link
that is changed later cannot redirect it.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.cri_config.environment import expand, undefined
from podling.kubelet.pod.actions import StartContainer
from podling.kubelet.pod.containers import ConfigError
from podling.kubelet.pod.directories import PodDirectory, make_message_file
from podling.kubelet.volumes.confined_path import opened
from podling.kubelet.volumes.files import VolumeError
from podling.kubelet.volumes.set_up import MountedVolume
from podling.model.types.container import EphemeralContainerCommon, VolumeMount
from podling.process.mounts import bind_mount, unmount

ENABLED = "Enabled"
IF_POSSIBLE = "IfPossible"
ETC_HOSTS = "/etc/hosts"

log = logging.getLogger(__name__)

_PROPAGATION = {
    None: pb.PROPAGATION_PRIVATE,
    "None": pb.PROPAGATION_PRIVATE,
    "HostToContainer": pb.PROPAGATION_HOST_TO_CONTAINER,
    "Bidirectional": pb.PROPAGATION_BIDIRECTIONAL,
}


def is_asked(mount: VolumeMount) -> bool:
    return mount.recursive_read_only in (ENABLED, IF_POSSIBLE)


def is_recursive(mount: VolumeMount, *, possible: bool) -> bool:
    """Whether the mount becomes recursively read-only; `possible`: the runtime supports it. Raises
    ConfigError if it is `Enabled` and impossible."""
    if not is_asked(mount):
        return False
    asked = f'volume "{mount.name}" requested recursive read-only mode, but it is not'
    if not mount.read_only:
        raise ConfigError(f"{asked} read-only")
    if mount.mount_propagation not in (None, "None"):
        raise ConfigError(f'{asked} compatible with propagation "{mount.mount_propagation}"')
    if mount.recursive_read_only == ENABLED and not possible:
        raise ConfigError(f"{asked} supported by the runtime")
    return possible


def check_subpath(sub_path: str) -> None:
    """Check a subPath again, after the expansion of subPathExpr. Raises VolumeError."""
    if sub_path.startswith("/"):
        raise VolumeError(f"error SubPath `{sub_path}` must not be an absolute path")
    if ".." in sub_path.split("/"):
        raise VolumeError(f"unable to provision SubPath `{sub_path}`: must not contain '..'")


def mount_subpath(volume: Path, sub_path: str, place: Path) -> Path:
    """Bind-mount what is at `sub_path` now to `place`, unless an earlier instance has it mounted there.

    Raises VolumeError if the path leaves the volume, and OSError."""
    with opened(volume, sub_path) as source:
        wanted = os.fstat(source)
        with suppress(OSError):
            found = place.stat()
            if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                return place
        # Whatever else is there is an earlier mount on an empty file or directory.
        unmount(place)
        if place.is_dir():
            place.rmdir()
        else:
            place.unlink(missing_ok=True)
        place.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        if stat.S_ISDIR(wanted.st_mode):
            place.mkdir(mode=0o750)
        else:
            place.touch(mode=0o640)
        # By descriptor, as a container may have replaced what has the name.
        bind_mount(f"/proc/self/fd/{source}", place, recursive=True)
    return place


class MountSources(msgspec.Struct, frozen=True):
    """What the mounts of one container are made of."""

    directory: PodDirectory
    volumes: Mapping[str, MountedVolume]
    """By name."""
    environment: Mapping[str, str]
    """For subPathExpr."""
    images: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Volume name → image, for the image volumes that the runtime mounts itself."""
    recursive_read_only: bool = False
    """The runtime can make recursively read-only mounts."""


def container_mounts(
    container: EphemeralContainerCommon, start: StartContainer, sources: MountSources
) -> list[pb.Mount]:
    """The container's mounts; makes message file and subPath mounts. Raises ConfigError if one is
    impossible."""
    mounts = [
        _volume_mount(container, index, mount, sources) for index, mount in enumerate(container.volume_mounts)
    ]
    # The kubelet's own files, unless the container mounts a volume there.
    taken = {mount.mount_path for mount in container.volume_mounts}
    etc_hosts = sources.directory.etc_hosts
    if ETC_HOSTS not in taken and etc_hosts.exists():
        mounts.append(pb.Mount(container_path=ETC_HOSTS, host_path=str(etc_hosts)))
    message_path = container.termination_message_path
    if message_path and message_path not in taken:
        file = make_message_file(sources.directory, container.name, start.attempt)
        mounts.append(pb.Mount(container_path=message_path, host_path=str(file)))
    return mounts


def container_devices(container: EphemeralContainerCommon, sources: MountSources) -> list[pb.Device]:
    """The container's block volumes (volumeDevices). Raises ConfigError."""
    devices = []
    for device in container.volume_devices:
        volume = sources.volumes.get(device.name)
        if volume is None or not volume.device:
            raise ConfigError(f'cannot find volume "{device.name}" to pass into container "{container.name}"')
        permissions = "r" if volume.read_only else "mrw"
        devices.append(
            pb.Device(container_path=device.device_path, host_path=str(volume.path), permissions=permissions)
        )
    return devices


def _volume_mount(
    container: EphemeralContainerCommon, index: int, mount: VolumeMount, sources: MountSources
) -> pb.Mount:
    volume = sources.volumes.get(mount.name)
    if volume is None or volume.device:
        raise ConfigError(f'cannot find volume "{mount.name}" to mount into container "{container.name}"')
    target = mount.mount_path if mount.mount_path.startswith("/") else f"/{mount.mount_path}"
    made = pb.Mount(
        container_path=target,
        readonly=(mount.read_only or volume.read_only) and not volume.sealed,
        propagation=_PROPAGATION[mount.mount_propagation],
        recursive_read_only=is_recursive(mount, possible=sources.recursive_read_only),
    )
    for name in undefined(mount.sub_path_expr, sources.environment):
        raise ConfigError(f"missing value for {name}")
    sub_path = expand(mount.sub_path_expr, sources.environment) or mount.sub_path
    try:
        check_subpath(sub_path)
    except VolumeError as error:
        raise ConfigError(str(error)) from error
    if image := sources.images.get(mount.name):
        made.image.image, made.image_sub_path = image, sub_path
        return made
    made.host_path = str(volume.path)
    if sub_path:
        place = sources.directory.subpath(mount.name, container.name, index)
        try:
            made.host_path = str(mount_subpath(volume.path, sub_path, place))
        except (VolumeError, OSError) as error:
            log.warning("%s: %s", place, error)
            where = f'volumeMount "{mount.name}" of container "{container.name}"'
            raise ConfigError(f"failed to prepare subPath for {where}") from error
    return made
