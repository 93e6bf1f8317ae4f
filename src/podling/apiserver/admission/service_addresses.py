"""Gives services their cluster address and node ports.

What is taken is read from the services themselves, so nothing can be lost or leak. Between the choice and the
moment the service is stored, a choice is only remembered here: the last ones given out are not given again.
Addresses are chosen at random, as Kubernetes does, past those at the start that people choose themselves.
"""

from __future__ import annotations

import ipaddress
import random
from collections import deque
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from podling.apiserver.admission.plugin import Attributes, Objects
from podling.apiserver.registry.field import invalid as invalid_field
from podling.model.errors import Cause, StatusError, internal, invalid
from podling.model.service import Service, ServicePort

SERVICE_CIDR = "10.96.0.0/16"
NODE_PORTS = range(30000, 32768)
LEFT_TO_PEOPLE = 256
REMEMBERED = 256
EXTERNAL, HEADLESS = "ExternalName", "None"
WITH_NODE_PORTS = ("LoadBalancer", "NodePort")

A = TypeVar("A")


class ServiceAddresses:
    def __init__(self, objects: Objects, cidr: str = SERVICE_CIDR) -> None:
        self._objects = objects
        self._network = ipaddress.ip_network(cidr)
        self._addresses = _Given[str]()
        self._ports = _Given[tuple[str, int]]()

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if attributes.is_for("services", "CREATE", "UPDATE"):
            others = [one for one in self._objects.all(Service) if one.metadata.uid != new.metadata.uid]
            if new.spec.type == EXTERNAL:
                new.spec.cluster_ip, new.spec.cluster_ips = "", []
            else:
                self._give_address(new, old, others)
            self._give_ports(new, others)

    def _give_address(self, service: Service, old: Service | None, others: Iterable[Service]) -> None:
        spec = service.spec
        if spec.cluster_ip == HEADLESS:
            return
        if spec.cluster_ip and old is not None and spec.cluster_ip == old.spec.cluster_ip:
            # Given before, perhaps under other rules.
            spec.cluster_ips = [spec.cluster_ip]
            return
        taken = {address for one in others for address in one.spec.cluster_ips}
        if not spec.cluster_ip:
            spec.cluster_ip = self._addresses.give(self._choose_address, taken)
        elif (fault := self._fault(spec.cluster_ip, taken)) is not None:
            why = f"failed to allocate IP {spec.cluster_ip}: {fault}"
            raise _invalid(service, invalid_field("spec.clusterIPs", [spec.cluster_ip], why))
        spec.cluster_ips = [spec.cluster_ip]

    def _choose_address(self, taken: set[str]) -> str | None:
        first, size = int(self._network.network_address), self._network.num_addresses
        start = LEFT_TO_PEOPLE if size > 2 * LEFT_TO_PEOPLE else 1
        count = size - 1 - start
        offset = random.randrange(count)
        candidates = (str(ipaddress.ip_address(first + start + (offset + i) % count)) for i in range(count))
        return next((address for address in candidates if address not in taken), None)

    def _fault(self, text: str, taken: set[str]) -> str | None:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            # Validation says what is wrong with it.
            return None
        if address not in self._network:
            return (
                f"the provided IP ({text}) is not in the valid range. "
                f"The range of valid IPs is {self._network}"
            )
        return "provided IP is already allocated" if text in taken else None

    def _give_ports(self, service: Service, others: Iterable[Service]) -> None:
        spec = service.spec
        if spec.type not in WITH_NODE_PORTS or spec.allocate_load_balancer_node_ports is False:
            return
        taken = {(port.protocol, port.node_port) for one in others for port in one.spec.ports}
        for i, port in enumerate(spec.ports):
            if not port.node_port:
                _, port.node_port = self._ports.give(lambda used, p=port: _choose_port(p, used), taken)
            elif (why := _port_fault(port, taken)) is not None:
                raise _invalid(service, invalid_field(f"spec.ports[{i}].nodePort", port.node_port, why))
            taken.add((port.protocol, port.node_port))


class _Given(Generic[A]):
    """What was given out last, and may not be stored yet."""

    def __init__(self) -> None:
        self._last: deque[A] = deque(maxlen=REMEMBERED)

    def give(self, choose: Any, taken: set[A]) -> A:
        """Raises StatusError 500 when nothing is left to give."""
        # When all that is left was just given out, giving one again is better than refusing.
        chosen: A | None = choose(taken | set(self._last)) or choose(taken)
        if chosen is None:
            raise internal("failed to allocate a serviceIP or nodePort: range is full")
        self._last.append(chosen)
        return chosen


def _choose_port(port: ServicePort, taken: set[tuple[str, int]]) -> tuple[str, int] | None:
    offset = random.randrange(len(NODE_PORTS))
    candidates = (NODE_PORTS[(offset + i) % len(NODE_PORTS)] for i in range(len(NODE_PORTS)))
    number = next((one for one in candidates if (port.protocol, one) not in taken), None)
    return None if number is None else (port.protocol, number)


def _port_fault(port: ServicePort, taken: set[tuple[str, int]]) -> str | None:
    if port.node_port not in NODE_PORTS:
        valid = f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"
        return f"provided port is not in the valid range. The range of valid ports is {valid}"
    return "provided port is already allocated" if (port.protocol, port.node_port) in taken else None


def _invalid(service: Service, fault: Cause) -> StatusError:
    return invalid("Service", service.metadata.name, [fault])
