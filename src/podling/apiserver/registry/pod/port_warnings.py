"""Warnings of ports that name the same place twice, or that name an address of the host but no port of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter

from podling.apiserver.registry.pod.containers import containers_with_paths
from podling.model.container import ContainerPort
from podling.model.pod import PodSpec


def warn_of_ports(spec: PodSpec, root: str) -> Iterator[str]:
    known: defaultdict[tuple[int, str], _Same] = defaultdict(_Same)
    for container, path in containers_with_paths(spec, root):
        for i, port in enumerate(container.ports):
            where = f"{path}.ports[{i}]"
            if port.host_ip and not port.host_port:
                yield f"{where}: hostIP set without hostPort: {_shown(port)}"
            same = known[port.container_port, port.protocol]
            for _, other, earlier in same.conflicts(port):
                yield f"{where}: {_conflict(port, other)} port definition with {earlier}"
            same.add(port, where)


_Known = tuple[int, ContainerPort, str]
"""When it came, the port, and where it is."""


class _Same:
    """The ports of one number and protocol, by what they may conflict in: no others are looked at."""

    def __init__(self) -> None:
        self._all: list[_Known] = []
        self._anywhere: list[_Known] = []
        self._of_any_address: defaultdict[int, list[_Known]] = defaultdict(list)
        self._of_address: defaultdict[tuple[str, int], list[_Known]] = defaultdict(list)

    def add(self, port: ContainerPort, where: str) -> None:
        known = len(self._all), port, where
        self._all.append(known)
        if not port.host_port:
            self._anywhere.append(known)
            return
        self._of_address[port.host_ip, port.host_port].append(known)
        if port.host_ip:
            self._of_any_address[port.host_port].append(known)

    def conflicts(self, port: ContainerPort) -> Iterable[_Known]:
        if not port.host_port:
            return self._all
        same = self._of_address.get((port.host_ip, port.host_port), [])
        without = self._of_address.get(("", port.host_port), [])
        ambiguous = without if port.host_ip else self._of_any_address.get(port.host_port, [])
        return merge(self._anywhere, same, ambiguous, key=itemgetter(0))


def _conflict(port: ContainerPort, other: ContainerPort) -> str:
    """Of two that do."""
    if (port.host_ip, port.host_port) == (other.host_ip, other.host_port):
        return "duplicate"
    if not port.host_port or not other.host_port:
        return "overlapping"
    return "dangerously ambiguous"


def _shown(port: ContainerPort) -> str:
    """As Go prints the struct."""
    return (
        f"{{Name:{port.name} HostPort:{port.host_port} ContainerPort:{port.container_port} "
        f"Protocol:{port.protocol} HostIP:{port.host_ip}}}"
    )
