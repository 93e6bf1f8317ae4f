"""Faults of the ports containers listen on, and of those they take on their host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podling.apiserver.registry.field import all_invalid, between, duplicate, invalid, one_of, required
from podling.model import names
from podling.model.container import Container, ContainerPort
from podling.model.enums import ENUMS
from podling.model.errors import Cause

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
