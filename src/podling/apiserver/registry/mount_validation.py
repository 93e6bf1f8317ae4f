"""Faults of the mounts by which a container uses the volumes of its pod."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping

from podling.apiserver.registry.field import forbidden, invalid, not_found, not_supported, required
from podling.apiserver.registry.volume_validation import BACKSTEPS
from podling.model.container import EphemeralContainerCommon, VolumeDevice, VolumeMount
from podling.model.errors import Cause
from podling.model.volume import Volume

PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")


def validate_mounts(
    container: EphemeralContainerCommon, path: str, volumes: Mapping[str, Volume]
) -> Iterator[Cause]:
    devices = {device.device_path for device in container.volume_devices}
    block_names = {device.name for device in container.volume_devices}
    seen: set[str] = set()
    for i, mount in enumerate(container.volume_mounts):
        where = f"{path}.volumeMounts[{i}]"
        yield from _validate_mount(mount, where, volumes)
        if mount.mount_path in seen:
            yield invalid(f"{where}.mountPath", mount.mount_path, "must be unique")
        seen.add(mount.mount_path)
        if mount.mount_path in devices:
            yield invalid(
                f"{where}.mountPath", mount.mount_path, "must not already exist as a path in volumeDevices"
            )
        if mount.name in block_names:
            yield invalid(f"{where}.name", mount.name, "must not already exist in volumeDevices")
    yield from _validate_devices(container.volume_devices, f"{path}.volumeDevices", volumes)
    yield from _validate_propagation(container, path)


def _validate_mount(mount: VolumeMount, path: str, volumes: Iterable[str]) -> Iterator[Cause]:
    if not mount.name:
        yield required(f"{path}.name")
    if mount.name not in volumes:
        yield not_found(f"{path}.name", mount.name)
    if not mount.mount_path:
        yield required(f"{path}.mountPath")
    yield from _validate_sub_path(mount.sub_path, f"{path}.subPath")
    yield from _validate_sub_path(mount.sub_path_expr, f"{path}.subPathExpr")
    if mount.sub_path and mount.sub_path_expr:
        yield invalid(
            f"{path}.subPathExpr", mount.sub_path_expr, "subPathExpr and subPath are mutually exclusive"
        )
    if mount.recursive_read_only not in (None, "Disabled"):
        if mount.recursive_read_only not in ("Enabled", "IfPossible"):
            supported = ("Disabled", "Enabled", "IfPossible")
            yield not_supported(f"{path}.recursiveReadOnly", mount.recursive_read_only, supported)
        elif not mount.read_only:
            yield forbidden(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true")


def _validate_sub_path(value: str, path: str) -> Iterator[Cause]:
    if value:
        if posixpath.isabs(value):
            yield invalid(path, value, "must be a relative path")
        if ".." in value.split("/"):
            yield invalid(path, value, BACKSTEPS)


def _validate_devices(
    devices: list[VolumeDevice], path: str, volumes: Mapping[str, Volume]
) -> Iterator[Cause]:
    for i, device in enumerate(devices):
        where = f"{path}[{i}]"
        if not device.name:
            yield required(f"{where}.name")
        volume = volumes.get(device.name)
        if volume is None:
            yield not_found(f"{where}.name", device.name)
        elif volume.persistent_volume_claim is None and volume.ephemeral is None:
            why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(f"{where}.name", device.name, why)
        if not device.device_path:
            yield required(f"{where}.devicePath")
        elif ".." in device.device_path.split("/"):
            yield invalid(f"{where}.devicePath", device.device_path, "can not contain backsteps ('..')")


def _validate_propagation(container: EphemeralContainerCommon, path: str) -> Iterator[Cause]:
    privileged = container.security_context is not None and container.security_context.privileged
    for i, mount in enumerate(container.volume_mounts):
        where = f"{path}.volumeMounts[{i}].mountPropagation"
        if mount.mount_propagation is None:
            continue
        if mount.mount_propagation not in PROPAGATIONS:
            yield not_supported(where, mount.mount_propagation, PROPAGATIONS)
        elif mount.mount_propagation == "Bidirectional" and not privileged:
            yield forbidden(
                where, "Bidirectional mount propagation is available only to privileged containers"
            )
