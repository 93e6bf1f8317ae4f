"""The ports of its node a pod takes, and whether two pods want the same. Pure; scheduler and kubelet ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from podling.model.pod import Pod
from podling.model.resources import is_sidecar

HostPort = tuple[str, str, int]
"""(protocol, address, port); an empty address is every address."""


def ports_collide(pod: Pod, others: Iterable[Pod]) -> bool:
    wanted = set(host_ports(pod))
    return bool(wanted) and any(collide(wanted, set(host_ports(other))) for other in others)


def host_ports(pod: Pod) -> Iterator[HostPort]:
    sidecars = (container for container in pod.spec.init_containers if is_sidecar(container))
    for container in (*pod.spec.containers, *sidecars):
        for port in container.ports:
            if port.host_port:
                address = "" if port.host_ip in ("", "0.0.0.0") else port.host_ip
                yield port.protocol or "TCP", address, port.host_port


def collide(wanted: Set[HostPort], used: Set[HostPort]) -> bool:
    return any(
        (protocol, port) == (other_protocol, other_port) and (not address or not other or address == other)
        for protocol, address, port in wanted
        for other_protocol, other, other_port in used
    )
