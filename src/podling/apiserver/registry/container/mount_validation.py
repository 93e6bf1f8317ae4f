"""Faults of the mounts by which a container uses the volumes of its pod.

Of a path within the volume and of how the mount propagates, Kubernetes names the list, not the item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podling.apiserver.registry.field import choice, forbidden, invalid, not_found, required
from podling.apiserver.registry.volume.paths import validate_descending
from podling.model.container import EphemeralContainerCommon, VolumeDevice, VolumeMount
from podling.model.errors import Cause
from podling.model.volume import Volume

PROPAGATIONS = frozenset(("Bidirectional", "HostToContainer", "None"))
RECURSIVE_READ_ONLY = frozenset(("Disabled", "Enabled", "IfPossible"))


def validate_mounts(
    container: EphemeralContainerCommon, path: str, volumes: Mapping[str, Volume]
) -> Iterator[Cause]:
    devices = {device.name: device.device_path for device in container.volume_devices}
    seen: set[str] = set()
    for i, mount in enumerate(container.volume_mounts):
        where = f"{path}[{i}]"
        if not mount.name:
            yield required(f"{where}.name")
        if mount.name not in volumes:
            yield not_found(f"{where}.name", mount.name)
        if not mount.mount_path:
            yield required(f"{where}.mountPath")
        if mount.mount_path in seen:
            yield invalid(f"{where}.mountPath", mount.mount_path, "must be unique")
        seen.add(mount.mount_path)
        if devices:
            yield from _validate_beside(mount, where, devices)
        yield from _validate_sub_path(mount, where, path)
        yield from _validate_propagation(mount, path, container)


def _validate_beside(mount: VolumeMount, path: str, devices: Mapping[str, str]) -> Iterator[Cause]:
    if mount.name in devices:
        yield invalid(f"{path}.name", mount.name, "must not already exist in volumeDevices")
    if mount.mount_path in devices.values():
        why = "must not already exist as a path in volumeDevices"
        yield invalid(f"{path}.mountPath", mount.mount_path, why)


def _validate_sub_path(mount: VolumeMount, where: str, path: str) -> Iterator[Cause]:
    if mount.sub_path:
        yield from validate_descending(mount.sub_path, f"{path}.subPath")
    if mount.sub_path_expr:
        if mount.sub_path:
            why = "subPathExpr and subPath are mutually exclusive"
            yield invalid(f"{where}.subPathExpr", mount.sub_path_expr, why)
        yield from validate_descending(mount.sub_path_expr, f"{path}.subPathExpr")


def _validate_propagation(
    mount: VolumeMount, path: str, container: EphemeralContainerCommon
) -> Iterator[Cause]:
    if mount.mount_propagation is not None:
        where = f"{path}.mountPropagation"
        yield from choice(where, mount.mount_propagation, PROPAGATIONS)
        context = container.security_context
        if mount.mount_propagation == "Bidirectional" and not (context and context.privileged):
            why = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden(where, why)
    if mount.recursive_read_only is None:
        return
    where = f"{path}.recursiveReadOnly"
    yield from choice(where, mount.recursive_read_only, RECURSIVE_READ_ONLY)
    if mount.recursive_read_only in ("Enabled", "IfPossible"):
        if not mount.read_only:
            yield forbidden(where, "may only be specified when readOnly is true")
        if mount.mount_propagation not in (None, "None"):
            why = "may only be specified when mountPropagation is None or not specified"
            yield forbidden(where, why)


def validate_devices(
    container: EphemeralContainerCommon, path: str, volumes: Mapping[str, Volume]
) -> Iterator[Cause]:
    mounts = {mount.name: mount.mount_path for mount in container.volume_mounts}
    names: set[str] = set()
    paths: set[str] = set()
    for i, device in enumerate(container.volume_devices):
        where = f"{path}[{i}]"
        yield from _validate_device_name(device, f"{where}.name", volumes, names)
        yield from _validate_device_path(device.device_path, f"{where}.devicePath", paths)
        if device.name in mounts:
            yield invalid(f"{where}.name", device.name, "must not already exist in volumeMounts")
        if device.device_path in mounts.values():
            why = "must not already exist as a path in volumeMounts"
            yield invalid(f"{where}.devicePath", device.device_path, why)


def _validate_device_name(
    device: VolumeDevice, path: str, volumes: Mapping[str, Volume], seen: set[str]
) -> Iterator[Cause]:
    if not device.name:
        yield required(path)
    elif device.name in seen:
        yield invalid(path, device.name, "must be unique")
    seen.add(device.name)
    volume = volumes.get(device.name)
    if volume is None:
        yield not_found(path, device.name)
    elif volume.persistent_volume_claim is None and volume.ephemeral is None:
        why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        yield invalid(path, device.name, why)


def _validate_device_path(value: str, path: str, seen: set[str]) -> Iterator[Cause]:
    if not value:
        yield required(path)
    if value in seen:
        yield invalid(path, value, "must be unique")
    if ".." in value.split("/"):
        yield invalid(path, value, "can not contain backsteps ('..')")
    else:
        seen.add(value)
