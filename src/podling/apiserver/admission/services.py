"""Gives services their IP families, cluster IPs and node ports.

A cluster IP comes from a ServiceCIDR that is in use, and is taken if there is an IPAddress of its name; that
of the service is stored with it (`kinds/services.py`). Which node ports are taken is read from the stored
services, and from what other servers on the same storage say (`store/node_ports.py`). Between the choice and
the moment when the service is stored, the choice is remembered here: the last ones given out are not given
again. A node port belongs to one service, whatever the protocol; within a service, protocols may share it.
"""

from __future__ import annotations

import ipaddress
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from typing import Any, ClassVar

from podling.apiserver.admission.plugin import Attributes, Handles, Objects
from podling.apiserver.rules.field import invalid as invalid_field
from podling.apiserver.rules.service.addresses import (
    EXTERNAL,
    is_headless,
    needs_cluster_ip,
    needs_health_check,
    needs_node_ports,
    node_ports,
    settle_families,
    wants_node_ports,
)
from podling.apiserver.rules.service.defaults import carry_over
from podling.apiserver.rules.service.ranges import ALLOCATED, PORT_ALLOCATED, Range, address_fault, range_of
from podling.model.errors import Cause, StatusError, internal, invalid
from podling.model.rules.addresses import family, is_in_use
from podling.model.types.networking import IPAddress, ServiceCIDR
from podling.model.types.service import Service

NODE_PORTS = range(30000, 32768)
REMEMBERED = 256
FULL = "range is full"


TakenPorts = Callable[[], Awaitable[set[int]]]


async def nobody_has_ports() -> set[int]:
    """Of a server that alone writes to its storage: the services that are stored say it."""
    return set()


class DenyServiceExternalIPs:
    """Refuses addresses of services that their writers chose: whose they are nobody can tell."""

    handles: ClassVar[Handles] = {"services": ("CREATE", "UPDATE")}

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        before = set() if old is None else set(old.spec.external_ips)
        if not before.issuperset(new.spec.external_ips):
            raise attributes.forbidden("Use of external IPs is denied by admission control")


class ServiceAddresses:
    handles: ClassVar[Handles] = {"services": ("CREATE", "UPDATE")}

    def __init__(
        self, objects: Objects, families: Sequence[str], taken_ports: TakenPorts = nobody_has_ports
    ) -> None:
        """`families`: those that services can have, the usual one first. `taken_ports`: what any server on
        the same storage has given out."""
        self._objects, self._families, self._taken_ports = objects, families, taken_ports
        self._last_addresses: deque[str] = deque(maxlen=REMEMBERED)
        self._last_ports: deque[int] = deque(maxlen=REMEMBERED)

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 422 for an address or port that cannot be given, 500 if none is left."""
        spec = new.spec
        if old is not None:
            # Here, because what is carried over has no manager by this write.
            carry_over(new, old)
        if faults := settle_families(spec, None if old is None else old.spec, self._families):
            raise invalid("Service", new.metadata.name, faults)
        if needs_cluster_ip(spec) and not is_headless(spec):
            self._give_addresses(new, old, dry_run=attributes.dry_run)
        if not needs_node_ports(spec):
            return
        others = (one for one in self._objects.all(Service) if one.metadata.uid != new.metadata.uid)
        taken = {number for one in others for number in node_ports(one.spec)}
        # A server beside this one may have given a port to a service that is yet to come.
        taken |= await self._taken_ports() - (set() if old is None else {*node_ports(old.spec)})
        self._give_ports(new, old, taken)
        if needs_health_check(spec) and (old is None or not needs_health_check(old.spec)):
            taken |= {port.node_port for port in spec.ports}
            number = spec.health_check_node_port
            if not number:
                spec.health_check_node_port = self._free_port(taken)
            elif (why := _port_fault(number, taken)) is not None:
                raise internal(f"failed to allocate requested HealthCheck NodePort {number}: {why}")

    def _give_addresses(self, service: Service, old: Service | None, *, dry_run: bool) -> None:
        """One of each family; those that the service has stay."""
        spec = service.spec
        held = [] if old is None or old.spec.type == EXTERNAL else old.spec.cluster_ips
        asked = list(spec.cluster_ips) or [spec.cluster_ip]
        spec.cluster_ips = asked + [""] * (len(spec.ip_families) - len(asked))
        given = [
            address if i < len(held) else self._give_address(service, wanted, address, dry_run=dry_run)
            for i, (wanted, address) in enumerate(zip(spec.ip_families, spec.cluster_ips, strict=True))
        ]
        spec.cluster_ip, spec.cluster_ips = given[0], given

    def _give_address(self, service: Service, wanted: str, asked: str, *, dry_run: bool) -> str:
        """`asked`, or one that is chosen of the family that is `wanted`."""
        spec, name = service.spec, service.metadata.name
        ranges = [
            range_of(cidr)
            for one in self._objects.all(ServiceCIDR)
            if is_in_use(one)
            for cidr in one.spec.cidrs
            if family(cidr) == wanted
        ]
        if dry_run and not ranges:
            raise _invalid(service, address_fault(spec, asked, "allocator not ready"))
        if asked:
            if fault := self._address_fault(asked, ranges, dry_run=dry_run):
                raise _invalid(service, address_fault(spec, asked, fault))
            return asked
        if dry_run:
            # Nothing is chosen: it is the address that names the range.
            return ranges[0].cidr.partition("/")[0]
        random.shuffle(ranges)
        free = (address for one in ranges for address in one.some() if not self._is_taken(address))
        # When all that is left was just given out, the one that was longest ago is.
        before = (
            address
            for address in self._last_addresses
            if not self._address_fault(address, ranges, dry_run=False)
        )
        chosen = next((one for one in free if one not in self._last_addresses), "") or next(before, "")
        if not chosen:
            raise internal(f'failed to allocate a serviceIP for Service "{name}": {FULL}')
        self._last_addresses.append(chosen)
        return chosen

    def _is_taken(self, address: str) -> bool:
        return self._objects.find(IPAddress, "", address) is not None

    def _address_fault(self, address: str, ranges: list[Range], *, dry_run: bool) -> str:
        """Why an address that somebody has chosen cannot be given. Whether it is taken is not asked in a dry
        run, as in Kubernetes."""
        meant = ipaddress.ip_address(address)
        if dry_run:
            if any(meant in ipaddress.ip_network(one.cidr) for one in ranges):
                return ""
            valid = f"The range of valid IPs is {ranges[0].cidr}"
            return f"the provided IP ({address}) is not in the valid range. {valid}"
        if not any(one.has(meant) for one in ranges):
            return "the provided network does not match the current range"
        return ALLOCATED if self._is_taken(address) else ""

    def _give_ports(self, service: Service, old: Service | None, taken: set[int]) -> None:
        """Give node ports. One that is asked for by number is given even if `allocateLoadBalancerNodePorts`
        is false."""
        spec, held = service.spec, set() if old is None else set(node_ports(old.spec))
        chosen: dict[int, int] = {}
        if old is None:
            # Ports of one number and different protocols share their node port.
            chosen = {port.port: port.node_port for port in reversed(spec.ports) if port.node_port}
        given: set[tuple[str, int]] = set()
        owners: dict[int, int] = {}
        for i, port in enumerate(spec.ports):
            if not port.node_port and not wants_node_ports(spec):
                continue
            port.node_port = port.node_port or chosen.get(port.port, 0)
            if not port.node_port:
                port.node_port = self._free_port(taken)
            elif port.node_port not in held and (why := _port_fault(port.node_port, taken)) is not None:
                raise _invalid(service, invalid_field(f"spec.ports[{i}].nodePort", port.node_port, why))
            if old is None:
                chosen[port.port] = port.node_port
                if owners.setdefault(port.node_port, port.port) != port.port:
                    path = f"spec.ports[{i}].nodePort"
                    raise _invalid(service, invalid_field(path, port.node_port, PORT_ALLOCATED))
            if (port.protocol, port.node_port) in given:
                raise StatusError(500, "", f"duplicate nodePort: {{{port.protocol} {port.node_port}}}")
            given.add((port.protocol, port.node_port))
            held.add(port.node_port)

    def _free_port(self, taken: set[int]) -> int:
        """One that is free, at random. Raises StatusError 500 if none is left."""
        offset = random.randrange(len(NODE_PORTS))
        # When all that is left was just given out, giving one again is better than refusing.
        for excluded in (taken | set(self._last_ports), taken):
            for number in chain(NODE_PORTS[offset:], NODE_PORTS[:offset]):
                if number not in excluded:
                    self._last_ports.append(number)
                    return number
        raise internal(f"failed to allocate a nodePort: {FULL}")


def _port_fault(number: int, taken: set[int]) -> str | None:
    if number not in NODE_PORTS:
        valid = f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"
        return f"provided port is not in the valid range. The range of valid ports is {valid}"
    return PORT_ALLOCATED if number in taken else None


def _invalid(service: Service, fault: Cause) -> StatusError:
    return invalid("Service", service.metadata.name, [fault])
