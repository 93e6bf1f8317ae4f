"""What is mounted into one container: its volume mounts, /etc/hosts, and the termination message file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.pod import termination
from podling.kubelet.pod.pod_directories import PodDirectory
from podling.kubelet.pod_actions import StartContainer
from podling.kubelet.runtime_config.environment import ConfigError
from podling.kubelet.runtime_config.expansion import expand
from podling.kubelet.volumes import subpath
from podling.kubelet.volumes.mounts import mounts_under
from podling.kubelet.volumes.payload import VolumeError
from podling.kubelet.volumes.set_up import MountedVolume
from podling.model.container import EphemeralContainerCommon, VolumeMount

ETC_HOSTS = "/etc/hosts"

_PROPAGATION = {
    None: pb.PROPAGATION_PRIVATE,
    "None": pb.PROPAGATION_PRIVATE,
    "HostToContainer": pb.PROPAGATION_HOST_TO_CONTAINER,
    "Bidirectional": pb.PROPAGATION_BIDIRECTIONAL,
}


def container_mounts(
    container: EphemeralContainerCommon,
    start: StartContainer,
    directory: PodDirectory,
    volumes: Mapping[str, MountedVolume],
    environment: Mapping[str, str],
) -> list[pb.Mount]:
    """Makes the files and sub-paths it mounts. Raises ConfigError when a mount cannot be had."""
    mounts = [
        _volume_mount(container, index, mount, directory, volumes, environment)
        for index, mount in enumerate(container.volume_mounts)
    ]
    mounts.extend(_own_files(container, start, directory))
    return mounts


def _volume_mount(
    container: EphemeralContainerCommon,
    index: int,
    mount: VolumeMount,
    directory: PodDirectory,
    volumes: Mapping[str, MountedVolume],
    environment: Mapping[str, str],
) -> pb.Mount:
    volume = volumes.get(mount.name)
    if volume is None:
        raise ConfigError(f'cannot find volume "{mount.name}" to mount into container "{container.name}"')
    path = volume.path
    sub_path = expand(mount.sub_path_expr, environment) if mount.sub_path_expr else mount.sub_path
    if sub_path:
        place = directory.subpath(mount.name, container.name, index)
        try:
            path = subpath.mount(volume.path, sub_path, place, bool(mounts_under(place)))
        except (VolumeError, OSError) as error:
            raise ConfigError(
                f'failed to prepare subPath for volumeMount "{mount.name}" of container "{container.name}"'
            ) from error
    target = mount.mount_path if mount.mount_path.startswith("/") else f"/{mount.mount_path}"
    return pb.Mount(
        container_path=target,
        host_path=str(path),
        readonly=mount.read_only or volume.read_only,
        propagation=_PROPAGATION[mount.mount_propagation],
    )


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
