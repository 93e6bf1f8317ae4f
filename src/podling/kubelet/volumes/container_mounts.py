"""The mounts of one container: its volumeMounts, /etc/hosts, and the termination message file.

A subPath is bind-mounted to a place of the kubelet's own before the container starts, so that a symbolic link
that is changed later cannot redirect it.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.cri_config.environment import expand, undefined
from podling.kubelet.host.mounts import bind_mount, unmount
from podling.kubelet.pod.actions import StartContainer
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.pod.faults import ConfigError
from podling.kubelet.pod.termination_message import make_message_file
from podling.kubelet.volumes.confined_path import opened
from podling.kubelet.volumes.files import VolumeError
from podling.kubelet.volumes.set_up import MountedVolume
from podling.model.types.container import EphemeralContainerCommon, VolumeMount

ENABLED = "Enabled"
IF_POSSIBLE = "IfPossible"


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
        if _is_at(place, wanted):
            return place
        _clear(place)
        place.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        if stat.S_ISDIR(wanted.st_mode):
            place.mkdir(mode=0o750)
        else:
            place.touch(mode=0o640)
        # By descriptor, as a container may have replaced what has the name.
        bind_mount(f"/proc/self/fd/{source}", place, recursive=True)
    return place


def _is_at(place: Path, wanted: os.stat_result) -> bool:
    try:
        found = place.stat()
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino)


def _clear(place: Path) -> None:
    """Unmount `place` and remove the empty file or directory."""
    unmount(place)
    if place.is_dir():
        place.rmdir()
    else:
        place.unlink(missing_ok=True)


ETC_HOSTS = "/etc/hosts"

log = logging.getLogger(__name__)

_PROPAGATION = {
    None: pb.PROPAGATION_PRIVATE,
    "None": pb.PROPAGATION_PRIVATE,
    "HostToContainer": pb.PROPAGATION_HOST_TO_CONTAINER,
    "Bidirectional": pb.PROPAGATION_BIDIRECTIONAL,
}


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
    for device in container.volume_devices:
        raise ConfigError(f'cannot find volume "{device.name}" to pass into container "{container.name}"')
    mounts = [
        _volume_mount(container, index, mount, sources) for index, mount in enumerate(container.volume_mounts)
    ]
    mounts.extend(_own_files(container, start, sources.directory))
    return mounts


def _volume_mount(
    container: EphemeralContainerCommon, index: int, mount: VolumeMount, sources: MountSources
) -> pb.Mount:
    volume = sources.volumes.get(mount.name)
    if volume is None:
        raise ConfigError(f'cannot find volume "{mount.name}" to mount into container "{container.name}"')
    target = mount.mount_path if mount.mount_path.startswith("/") else f"/{mount.mount_path}"
    made = pb.Mount(
        container_path=target,
        readonly=(mount.read_only or volume.read_only) and not volume.sealed,
        propagation=_PROPAGATION[mount.mount_propagation],
        recursive_read_only=is_recursive(mount, possible=sources.recursive_read_only),
    )
    sub_path = _sub_path(mount, sources.environment)
    if image := sources.images.get(mount.name):
        made.image.image, made.image_sub_path = image, sub_path
    elif sub_path:
        place = sources.directory.subpath(mount.name, container.name, index)
        made.host_path = str(_bound(container, mount, volume.path, sub_path, place))
    else:
        made.host_path = str(volume.path)
    return made


def _sub_path(mount: VolumeMount, environment: Mapping[str, str]) -> str:
    for name in undefined(mount.sub_path_expr, environment):
        raise ConfigError(f'missing value for "{name}"')
    sub_path = expand(mount.sub_path_expr, environment) or mount.sub_path
    try:
        check_subpath(sub_path)
    except VolumeError as error:
        raise ConfigError(str(error)) from error
    return sub_path


def _bound(
    container: EphemeralContainerCommon, mount: VolumeMount, volume: Path, sub_path: str, place: Path
) -> Path:
    try:
        return mount_subpath(volume, sub_path, place)
    except (VolumeError, OSError) as error:
        log.warning("%s: %s", place, error)
        raise ConfigError(
            f'failed to prepare subPath for volumeMount "{mount.name}" of container "{container.name}"'
        ) from error


def _own_files(
    container: EphemeralContainerCommon, start: StartContainer, directory: PodDirectory
) -> Iterator[pb.Mount]:
    """/etc/hosts and the termination message file, unless the container mounts a volume there."""
    taken = {mount.mount_path for mount in container.volume_mounts}
    if ETC_HOSTS not in taken and directory.etc_hosts.exists():
        yield pb.Mount(container_path=ETC_HOSTS, host_path=str(directory.etc_hosts))
    message_path = container.termination_message_path
    if message_path and message_path not in taken:
        file = make_message_file(directory, container.name, start.attempt)
        yield pb.Mount(container_path=message_path, host_path=str(file))
