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
from itertools import chain
from typing import Any, ClassVar, Generic, TypeVar

from podling.apiserver.admission.plugin import Attributes, Handles, Objects
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
from podling.model.types.service import Service, ServiceSpec

SERVICE_CIDR = "10.96.0.0/16"
NODE_PORTS = range(30000, 32768)
LEFT_TO_PEOPLE = 256
REMEMBERED = 256

A = TypeVar("A")


class ServiceAddresses:
    handles: ClassVar[Handles] = {"services": ("CREATE", "UPDATE")}

    def __init__(self, objects: Objects, cidr: str = SERVICE_CIDR) -> None:
        self._objects = objects
        self._network = ipaddress.ip_network(cidr)
        first, size = int(self._network.network_address), self._network.num_addresses
        start = LEFT_TO_PEOPLE if size > 2 * LEFT_TO_PEOPLE else 1
        addresses = range(first + start, first + size - 1)
        self._addresses = _Given("serviceIP", addresses, lambda number: str(ipaddress.ip_address(number)))
        self._ports = _Given("nodePort", NODE_PORTS, int)

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 422 for an address or port that cannot be given, 500 if none is left."""
        if faults := settle_families(new.spec, None if old is None else old.spec):
            raise invalid("Service", new.metadata.name, faults)
        others = [one for one in self._objects.all(Service) if one.metadata.uid != new.metadata.uid]
        if old is None or old.spec.type == EXTERNAL:
            self._give_address(new, others)
        taken = {number for one in others for number in _node_ports(one.spec)}
        if needs_node_ports(new.spec):
            self._give_ports(new, old, taken)
        if needs_health_check(new.spec) and (old is None or not needs_health_check(old.spec)):
            taken |= {port.node_port for port in new.spec.ports}
            number = new.spec.health_check_node_port
            if not number:
                new.spec.health_check_node_port = self._ports.give(taken)
            elif (why := _port_fault(number, taken)) is not None:
                raise internal(f"failed to allocate requested HealthCheck NodePort {number}: {why}")

    def _give_address(self, service: Service, others: Iterable[Service]) -> None:
        """Give cluster IPs to a service that now needs them; those it has do not change."""
        spec = service.spec
        if spec.type == EXTERNAL or is_headless(spec):
            return
        taken = {address for one in others for address in one.spec.cluster_ips}
        address, fault = spec.cluster_ip, ""
        if not address:
            spec.cluster_ip = self._addresses.give(taken)
            spec.cluster_ips = [spec.cluster_ip]
        elif ipaddress.ip_address(address) not in self._network:
            fault = (
                f"the provided IP ({address}) is not in the valid range. "
                f"The range of valid IPs is {self._network}"
            )
        elif address in taken:
            fault = "provided IP is already allocated"
        if fault:
            why = f"failed to allocate IP {address}: {fault}"
            raise _invalid(service, invalid_field("spec.clusterIPs", spec.cluster_ips, why))

    def _give_ports(self, service: Service, old: Service | None, taken: set[int]) -> None:
        """Give node ports. One that is asked for by number is given even if `allocateLoadBalancerNodePorts`
        is false."""
        spec, held = service.spec, set() if old is None else set(_node_ports(old.spec))
        chosen: dict[int, int] = {}
        if old is None:
            # Ports of one number and different protocols share their node port.
            chosen = {port.port: port.node_port for port in reversed(spec.ports) if port.node_port}
        given: set[tuple[str, int]] = set()
        for i, port in enumerate(spec.ports):
            if not port.node_port and not wants_node_ports(spec):
                continue
            port.node_port = port.node_port or chosen.get(port.port, 0)
            if not port.node_port:
                port.node_port = self._ports.give(taken)
            elif port.node_port not in held and (why := _port_fault(port.node_port, taken)) is not None:
                raise _invalid(service, invalid_field(f"spec.ports[{i}].nodePort", port.node_port, why))
            if old is None:
                chosen[port.port] = port.node_port
            if (port.protocol, port.node_port) in given:
                raise internal(f"duplicate nodePort: {{{port.protocol} {port.node_port}}}")
            given.add((port.protocol, port.node_port))
            held.add(port.node_port)


class _Given(Generic[A]):
    """Gives out addresses or ports, which it makes of numbers. It knows the last ones given out, whose
    services may not be stored yet."""

    def __init__(self, what: str, numbers: range, make: Callable[[int], A]) -> None:
        self._what = what
        self._numbers = numbers
        self._make = make
        self._last: deque[A] = deque(maxlen=REMEMBERED)

    def give(self, taken: set[A]) -> A:
        """One that is free, at random. Raises StatusError 500 if none is left."""
        offset = random.randrange(self._numbers.stop - self._numbers.start)
        # When all that is left was just given out, giving one again is better than refusing.
        for excluded in (taken | set(self._last), taken):
            for number in chain(self._numbers[offset:], self._numbers[:offset]):
                if (chosen := self._make(number)) not in excluded:
                    self._last.append(chosen)
                    return chosen
        raise internal(f"failed to allocate a {self._what}: range is full")


def _node_ports(spec: ServiceSpec) -> Iterator[int]:
    yield from (port.node_port for port in spec.ports if port.node_port)
    if spec.health_check_node_port:
        yield spec.health_check_node_port


def _port_fault(number: int, taken: set[int]) -> str | None:
    if number not in NODE_PORTS:
        valid = f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"
        return f"provided port is not in the valid range. The range of valid ports is {valid}"
    return "provided port is already allocated" if number in taken else None


def _invalid(service: Service, fault: Cause) -> StatusError:
    return invalid("Service", service.metadata.name, [fault])
