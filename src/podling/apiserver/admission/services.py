"""Gives services their IP families, cluster IPs and node ports.

What is taken is read from the stored services, so nothing is lost or leaks. Between the choice and the moment
when the service is stored, the choice is remembered here: the last ones given out are not given again. IPs
are chosen at random, as in Kubernetes, above the lowest ones, which are left for people to choose. A node
port belongs to one service, whatever the protocol; within a service, protocols may share it.
"""

from __future__ import annotations

import ipaddress
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from podling.apiserver.admission.chain import Attributes, Objects
from podling.apiserver.rules.field import invalid as invalid_field
from podling.apiserver.rules.service.addresses import (
    EXTERNAL,
    is_headless,
    needs_health_check,
    needs_node_ports,
    settle_families,
    wants_node_ports,
)
from podling.model.errors import Cause, StatusError, internal, invalid
from podling.model.types.service import Service, ServicePort, ServiceSpec

SERVICE_CIDR = "10.96.0.0/16"
NODE_PORTS = range(30000, 32768)
LEFT_TO_PEOPLE = 256
REMEMBERED = 256

A = TypeVar("A")


class ServiceAddresses:
    def __init__(self, objects: Objects, cidr: str = SERVICE_CIDR) -> None:
        self._objects = objects
        self._network = ipaddress.ip_network(cidr)
        self._addresses = _Given[str]("serviceIP")
        self._ports = _Given[int]("nodePort")

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 422 for an address or port that cannot be given, 500 if none is left."""
        if not attributes.is_for("services", "CREATE", "UPDATE"):
            return
        if faults := settle_families(new.spec, None if old is None else old.spec):
            raise invalid("Service", new.metadata.name, faults)
        others = [one for one in self._objects.all(Service) if one.metadata.uid != new.metadata.uid]
        if old is None or old.spec.type == EXTERNAL:
            self._give_address(new, others)
        taken = {number for one in others for number in _node_ports(one.spec)}
        if needs_node_ports(new.spec):
            self._give_ports(new, old, taken)
        self._give_health_port(new.spec, None if old is None else old.spec, taken)

    def _give_address(self, service: Service, others: Iterable[Service]) -> None:
        """Give cluster IPs to a service that now needs them; those it has do not change."""
        spec = service.spec
        if spec.type == EXTERNAL or is_headless(spec):
            return
        taken = {address for one in others for address in one.spec.cluster_ips}
        if not spec.cluster_ip:
            spec.cluster_ip = self._addresses.give(self._choose_address, taken)
            spec.cluster_ips = [spec.cluster_ip]
        elif (fault := self._fault(spec.cluster_ip, taken)) is not None:
            why = f"failed to allocate IP {spec.cluster_ip}: {fault}"
            raise _invalid(service, invalid_field("spec.clusterIPs", spec.cluster_ips, why))

    def _choose_address(self, taken: set[str]) -> str | None:
        first, size = int(self._network.network_address), self._network.num_addresses
        start = LEFT_TO_PEOPLE if size > 2 * LEFT_TO_PEOPLE else 1
        count = size - 1 - start
        offset = random.randrange(count)
        candidates = (str(ipaddress.ip_address(first + start + (offset + i) % count)) for i in range(count))
        return next((address for address in candidates if address not in taken), None)

    def _fault(self, text: str, taken: set[str]) -> str | None:
        """Why a well-formed cluster IP cannot be given; None if it can."""
        if ipaddress.ip_address(text) not in self._network:
            return (
                f"the provided IP ({text}) is not in the valid range. "
                f"The range of valid IPs is {self._network}"
            )
        return "provided IP is already allocated" if text in taken else None

    def _give_ports(self, service: Service, old: Service | None, taken: set[int]) -> None:
        """Give node ports. One that is asked for by number is given even if `allocateLoadBalancerNodePorts`
        is false."""
        spec, held = service.spec, set() if old is None else set(_node_ports(old.spec))
        chosen = _of_same_port(spec.ports) if old is None else {}
        given: set[tuple[str, int]] = set()
        for i, port in enumerate(spec.ports):
            if not port.node_port and not wants_node_ports(spec):
                continue
            port.node_port = port.node_port or chosen.get(port.port, 0)
            if not port.node_port:
                port.node_port = self._ports.give(_choose_port, taken)
            elif port.node_port not in held and (why := _port_fault(port.node_port, taken)) is not None:
                raise _invalid(service, invalid_field(f"spec.ports[{i}].nodePort", port.node_port, why))
            if old is None:
                chosen[port.port] = port.node_port
            if (port.protocol, port.node_port) in given:
                raise internal(f"duplicate nodePort: {{{port.protocol} {port.node_port}}}")
            given.add((port.protocol, port.node_port))
            held.add(port.node_port)

    def _give_health_port(self, spec: ServiceSpec, old: ServiceSpec | None, taken: set[int]) -> None:
        if not needs_health_check(spec) or (old is not None and needs_health_check(old)):
            return
        taken = taken | {port.node_port for port in spec.ports}
        number = spec.health_check_node_port
        if not number:
            spec.health_check_node_port = self._ports.give(_choose_port, taken)
        elif (why := _port_fault(number, taken)) is not None:
            raise internal(f"failed to allocate requested HealthCheck NodePort {number}: {why}")


class _Given(Generic[A]):
    """The last addresses or ports given out, whose services may not be stored yet."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._last: deque[A] = deque(maxlen=REMEMBERED)

    def give(self, choose: Callable[[set[A]], A | None], taken: set[A]) -> A:
        """One that is free. Raises StatusError 500 if none is left."""
        # When all that is left was just given out, giving one again is better than refusing.
        chosen = choose(taken | set(self._last)) or choose(taken)
        if chosen is None:
            raise internal(f"failed to allocate a {self._what}: range is full")
        self._last.append(chosen)
        return chosen


def _node_ports(spec: ServiceSpec) -> Iterator[int]:
    yield from (port.node_port for port in spec.ports if port.node_port)
    if spec.health_check_node_port:
        yield spec.health_check_node_port


def _of_same_port(ports: Iterable[ServicePort]) -> dict[int, int]:
    """Node ports by port number: ports of one number and different protocols share their node port."""
    return {port.port: port.node_port for port in reversed(list(ports)) if port.node_port}


def _choose_port(taken: set[int]) -> int | None:
    offset = random.randrange(len(NODE_PORTS))
    candidates = (NODE_PORTS[(offset + i) % len(NODE_PORTS)] for i in range(len(NODE_PORTS)))
    return next((number for number in candidates if number not in taken), None)


def _port_fault(number: int, taken: set[int]) -> str | None:
    if number not in NODE_PORTS:
        valid = f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"
        return f"provided port is not in the valid range. The range of valid ports is {valid}"
    return "provided port is already allocated" if number in taken else None


def _invalid(service: Service, fault: Cause) -> StatusError:
    return invalid("Service", service.metadata.name, [fault])
