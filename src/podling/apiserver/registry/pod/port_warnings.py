"""Warnings of ports that name the same place twice, or that name an address of the host but no port of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from podling.apiserver.registry.pod.containers import containers_with_paths
from podling.model.container import ContainerPort
from podling.model.pod import PodSpec


def warn_of_ports(spec: PodSpec, root: str) -> Iterator[str]:
    known: defaultdict[tuple[int, str], list[tuple[ContainerPort, str]]] = defaultdict(list)
    for container, path in containers_with_paths(spec, root):
        for i, port in enumerate(container.ports):
            where = f"{path}.ports[{i}]"
            if port.host_ip and not port.host_port:
                yield f"{where}: hostIP set without hostPort: {_shown(port)}"
            same = known[port.container_port, port.protocol]
            for other, earlier in same:
                what = _conflict(port, other)
                if what:
                    yield f"{where}: {what} port definition with {earlier}"
            same.append((port, where))


def _conflict(port: ContainerPort, other: ContainerPort) -> str:
    if (port.host_ip, port.host_port) == (other.host_ip, other.host_port):
        return "duplicate"
    if not port.host_port or not other.host_port:
        return "overlapping"
    if port.host_port == other.host_port and bool(port.host_ip) != bool(other.host_ip):
        return "dangerously ambiguous"
    return ""


def _shown(port: ContainerPort) -> str:
    """As Go prints the struct."""
    return (
        f"{{Name:{port.name} HostPort:{port.host_port} ContainerPort:{port.container_port} "
        f"Protocol:{port.protocol} HostIP:{port.host_ip}}}"
    )
