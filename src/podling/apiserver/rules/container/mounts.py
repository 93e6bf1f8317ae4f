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
    validate_descending,
)
from podling.model import names
from podling.model.enums import ENUMS
from podling.model.errors import Cause
from podling.model.types.container import (
    Container,
    ContainerPort,
    EphemeralContainerCommon,
    VolumeMount,
)
from podling.model.types.volume import Volume

PROTOCOLS = frozenset(ENUMS["ContainerPort", "protocol"])
MAX_PORT = 65535

PROPAGATIONS = frozenset(("Bidirectional", "HostToContainer", "None"))
RECURSIVE_READ_ONLY = frozenset(("Disabled", "Enabled", "IfPossible"))


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


def validate_port(port: int | str, path: str) -> list[Cause]:
    """A number, or the name of a port of the container."""
    if isinstance(port, int):
        return between(path, port, 1, MAX_PORT)
    return all_invalid(path, port, names.port_name(port))


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
            if mount.name in devices:
                yield invalid(f"{where}.name", mount.name, "must not already exist in volumeDevices")
            if mount.mount_path in devices.values():
                why = "must not already exist as a path in volumeDevices"
                yield invalid(f"{where}.mountPath", mount.mount_path, why)
        if mount.sub_path:
            yield from validate_descending(mount.sub_path, f"{path}.subPath")
        if mount.sub_path_expr:
            if mount.sub_path:
                why = "subPathExpr and subPath are mutually exclusive"
                yield invalid(f"{where}.subPathExpr", mount.sub_path_expr, why)
            yield from validate_descending(mount.sub_path_expr, f"{path}.subPathExpr")
        yield from _validate_propagation(mount, path, container)


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
        where, name = f"{path}[{i}].name", device.name
        if not name:
            yield required(where)
        elif name in names:
            yield invalid(where, name, "must be unique")
        names.add(name)
        volume = volumes.get(name)
        if volume is None:
            yield not_found(where, name)
        elif volume.persistent_volume_claim is None and volume.ephemeral is None:
            why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(where, name, why)
        where, value = f"{path}[{i}].devicePath", device.device_path
        if not value:
            yield required(where)
        if value in paths:
            yield invalid(where, value, "must be unique")
        if ".." in value.split("/"):
            yield invalid(where, value, "can not contain backsteps ('..')")
        else:
            paths.add(value)
        if name in mounts:
            yield invalid(f"{path}[{i}].name", name, "must not already exist in volumeMounts")
        if value in mounts.values():
            yield invalid(where, value, "must not already exist as a path in volumeMounts")
