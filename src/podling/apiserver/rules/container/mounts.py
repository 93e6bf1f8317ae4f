"""Validation of a container's ports, volume mounts and block devices.

For a path within a volume and for mount propagation, the fault's path names the list, not the item, as in
Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from podling.apiserver.rules.field import (
    all_invalid,
    between,
    choice,
    duplicate,
    forbidden,
    invalid,
    not_found,
    one_of,
    required,
)
from podling.apiserver.rules.paths import validate_descending
from podling.model import names
from podling.model.enums import ENUMS
from podling.model.errors import Cause
from podling.model.types.container import (
    Container,
    ContainerPort,
    EphemeralContainerCommon,
    VolumeDevice,
    VolumeMount,
)
from podling.model.types.volume import Volume

PROTOCOLS = frozenset(ENUMS["ContainerPort", "protocol"])
MAX_PORT = 65535


def validate_ports(ports: list[ContainerPort], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, port in enumerate(ports):
        where = f"{path}[{i}]"
        if port.name:
            faults = names.port_name(port.name)
            yield from all_invalid(f"{where}.name", port.name, faults)
            if not faults and port.name in seen:
                yield duplicate(f"{where}.name", port.name)
            seen.add(port.name)
        if not port.container_port:
            yield required(f"{where}.containerPort")
        else:
            yield from between(f"{where}.containerPort", port.container_port, 1, MAX_PORT)
        if port.host_port:
            yield from between(f"{where}.hostPort", port.host_port, 1, MAX_PORT)
        yield from one_of(f"{where}.protocol", port.protocol, PROTOCOLS)


def validate_host_ports(containers: Sequence[Container], path: str) -> Iterator[Cause]:
    """Containers beside each other cannot share a port of the host."""
    taken: set[str] = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.ports):
            if not port.host_port:
                continue
            place = f"{port.protocol}/{port.host_ip}/{port.host_port}"
            if place in taken:
                yield duplicate(f"{path}[{i}].ports[{j}].hostPort", place)
            taken.add(place)


def validate_ports_on_host(containers: list[Container], path: str, *, template: bool) -> Iterator[Cause]:
    """In the host's network a port is what it is; a template's is filled in when a pod is made of it."""
    for i, container in enumerate(containers):
        for j, port in enumerate(container.ports):
            if port.host_port == port.container_port or (template and not port.host_port):
                continue
            why = "must match `containerPort` when `hostNetwork` is true"
            yield invalid(f"{path}[{i}].ports[{j}].hostPort", port.host_port, why)


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
