"""What is mounted into one container: its volume mounts, /etc/hosts, and the termination message file."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.pod import termination
from podling.kubelet.pod.pod_directories import PodDirectory
from podling.kubelet.pod_actions import StartContainer
from podling.kubelet.runtime_config.environment import ConfigError
from podling.kubelet.runtime_config.expansion import expand, undefined
from podling.kubelet.volumes import subpath
from podling.kubelet.volumes.payload import VolumeError
from podling.kubelet.volumes.read_only import is_recursive
from podling.kubelet.volumes.set_up import MountedVolume
from podling.model.container import EphemeralContainerCommon, VolumeMount

ETC_HOSTS = "/etc/hosts"

log = logging.getLogger(__name__)

_PROPAGATION = {
    None: pb.PROPAGATION_PRIVATE,
    "None": pb.PROPAGATION_PRIVATE,
    "HostToContainer": pb.PROPAGATION_HOST_TO_CONTAINER,
    "Bidirectional": pb.PROPAGATION_BIDIRECTIONAL,
}


class MountSources(msgspec.Struct, frozen=True):
    """What the mounts of one container are made of. `images`: for the volumes the runtime mounts by itself,
    the image. `recursive_read_only`: whether the runtime can make such mounts."""

    directory: PodDirectory
    volumes: Mapping[str, MountedVolume]
    environment: Mapping[str, str]
    images: Mapping[str, str] = msgspec.field(default_factory=dict)
    recursive_read_only: bool = False


def container_mounts(
    container: EphemeralContainerCommon, start: StartContainer, sources: MountSources
) -> list[pb.Mount]:
    """Makes the files and sub-paths it mounts. Raises ConfigError when a mount cannot be had."""
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
        subpath.check(sub_path)
    except VolumeError as error:
        raise ConfigError(str(error)) from error
    return sub_path


def _bound(
    container: EphemeralContainerCommon, mount: VolumeMount, volume: Path, sub_path: str, place: Path
) -> Path:
    try:
        return subpath.mount(volume, sub_path, place)
    except (VolumeError, OSError) as error:
        log.warning("%s: %s", place, error)
        raise ConfigError(
            f'failed to prepare subPath for volumeMount "{mount.name}" of container "{container.name}"'
        ) from error


def _own_files(
    container: EphemeralContainerCommon, start: StartContainer, directory: PodDirectory
) -> Iterator[pb.Mount]:
    """What the pod mounts itself at these places goes before the kubelet's files."""
    taken = {mount.mount_path for mount in container.volume_mounts}
    if ETC_HOSTS not in taken and directory.etc_hosts.exists():
        yield pb.Mount(container_path=ETC_HOSTS, host_path=str(directory.etc_hosts))
    message_path = container.termination_message_path
    if message_path and message_path not in taken:
        file = termination.make_file(directory, container.name, start.attempt)
        yield pb.Mount(container_path=message_path, host_path=str(file))
