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
from podling.apiserver.rules.service.ranges import (
    ALLOCATED,
    PORT_ALLOCATED,
    Range,
    address_fault,
    not_allocated,
    range_of,
)
from podling.model.errors import Cause, StatusError, invalid
from podling.model.rules.addresses import family, is_in_use
from podling.model.types.networking import IPAddress, ServiceCIDR
from podling.model.types.service import Service, ServiceSpec

NODE_PORTS = range(30000, 32768)
REMEMBERED = 256
FULL = "range is full"
NAMELESS = 'IPAddress.networking.k8s.io "{}" is invalid: spec.parentRef.name: Required value'
"""Of a service without a name: the object of its address is made first."""
NODE_PORT = "nodePort"


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
        if needs_cluster_ip(spec):
            self._give_addresses(new, old, dry_run=attributes.dry_run)
        if not needs_node_ports(spec):
            return
        taken = {number for one in self._objects.all(Service) for number in node_ports(one.spec)}
        # A server beside this one may have given a port to a service that is yet to come.
        ports = _Ports(taken | await self._taken_ports(), self._last_ports, dry_run=attributes.dry_run)
        if old is None:
            _give_ports(new, ports)
        else:
            _change_ports(new, old, ports)
        if needs_health_check(spec) and (old is None or not needs_health_check(old.spec)):
            _give_health_check(spec, ports)

    def _give_addresses(self, service: Service, old: Service | None, *, dry_run: bool) -> None:
        """One of each family to a service that had none; to another only the second, when it comes to have a
        second family."""
        spec = service.spec
        if old is None or old.spec.type == EXTERNAL:
            if is_headless(spec):
                return
            asked = list(spec.cluster_ips) or [spec.cluster_ip]
            spec.cluster_ips = asked + [""] * (len(spec.ip_families) - len(asked))
            spec.cluster_ips = [
                self._give_address(service, wanted, address, dry_run=dry_run)
                for wanted, address in zip(spec.ip_families, spec.cluster_ips, strict=True)
            ]
            spec.cluster_ip = spec.cluster_ips[0]
        elif not is_headless(old.spec) and (len(old.spec.ip_families), len(spec.ip_families)) == (1, 2):
            wanted, address = spec.ip_families[1], next(iter(spec.cluster_ips[1:]), "")
            second = self._give_address(service, wanted, address, dry_run=dry_run)
            spec.cluster_ips = [*spec.cluster_ips[:1], second]

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
            if not name and not dry_run:
                raise _invalid(service, address_fault(spec, asked, NAMELESS.format(asked)))
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
            raise not_allocated(f'failed to allocate a serviceIP for Service "{name}": {FULL}')
        if not name:
            raise _invalid(service, address_fault(spec, "", NAMELESS.format(chosen)))
        self._last_addresses.append(chosen)
        return chosen

    def _is_taken(self, address: str) -> bool:
        return self._objects.find(IPAddress, "", address) is not None

    def _address_fault(self, address: str, ranges: list[Range], *, dry_run: bool) -> str:
        """Why an address that somebody has chosen cannot be given. Whether it is taken is not asked in a dry
        run, as in Kubernetes."""
        meant = ipaddress.ip_address(address)
        is_within = any(one.has(meant) for one in ranges)
        if dry_run:
            valid = f"The range of valid IPs is {ranges[0].cidr}"
            fault = f"the provided IP ({address}) is not in the valid range. {valid}"
            return "" if is_within else fault
        if not is_within:
            return "the provided network does not match the current range"
        return ALLOCATED if self._is_taken(address) else ""


class _Ports:
    """The node ports of one request. In a dry run none is chosen by chance, and one that somebody has chosen
    may be out of the range, as in Kubernetes."""

    def __init__(self, taken: set[int], last: deque[int], *, dry_run: bool) -> None:
        """`taken` is added to, and so is `last`: those that were given out last, by any request."""
        self._taken, self._last, self._dry_run = taken, last, dry_run
        self._avoided = taken | set(last)
        self._highest: int | None = None
        """Of those that this request has."""

    def take(self, number: int) -> str | None:
        """Why it cannot be had."""
        if not self._dry_run and number not in NODE_PORTS:
            valid = f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"
            return f"provided port is not in the valid range. The range of valid ports is {valid}"
        if number in self._taken:
            return PORT_ALLOCATED
        self._hold(number)
        return None

    def any(self, what: str) -> int:
        """One that is free, at random. Raises StatusError 500 if none is left."""
        highest = NODE_PORTS.stop if self._highest is None else self._highest
        number = highest + 1 if self._dry_run else self._free(what)
        self._hold(number)
        return number

    def _hold(self, number: int) -> None:
        self._taken.add(number)
        self._avoided.add(number)
        self._highest = number if self._highest is None else max(self._highest, number)

    def _free(self, what: str) -> int:
        offset = random.randrange(len(NODE_PORTS))
        # When all that is left was just given out, giving one again is better than refusing.
        for excluded in (self._avoided, self._taken):
            for number in chain(NODE_PORTS[offset:], NODE_PORTS[:offset]):
                if number not in excluded:
                    self._last.append(number)
                    return number
        raise not_allocated(f"failed to allocate a {what}: {FULL}")


def _give_ports(service: Service, ports: _Ports) -> None:
    """Those of a new service. Ports of one number and different protocols share theirs. One that is asked for
    by number is given even if `allocateLoadBalancerNodePorts` is false."""
    spec = service.spec
    asked = {port.port: port.node_port for port in reversed(spec.ports) if port.node_port}
    given: dict[int, int] = {}
    for i, port in enumerate(spec.ports):
        if not port.node_port and not wants_node_ports(spec):
            continue
        if port.port in given:
            port.node_port = port.node_port or given[port.port]
            if port.node_port != given[port.port]:
                _take(service, i, port.node_port, ports)
        elif number := asked.get(port.port):
            _take(service, i, number, ports)
            port.node_port = given[port.port] = number
        else:
            port.node_port = given[port.port] = ports.any(NODE_PORT)


def _change_ports(service: Service, old: Service, ports: _Ports) -> None:
    """Those that the service has are its own. Raises StatusError."""
    spec, own = service.spec, {port.node_port for port in old.spec.ports}
    given: set[tuple[str, int]] = set()
    for i, port in enumerate(spec.ports):
        if not port.node_port and not wants_node_ports(spec):
            continue
        if not port.node_port:
            port.node_port = ports.any(NODE_PORT)
        elif port.node_port not in own:
            _take(service, i, port.node_port, ports)
            own.add(port.node_port)
        if (port.protocol, port.node_port) in given:
            raise StatusError(500, "", f"duplicate nodePort: {{{port.protocol} {port.node_port}}}")
        given.add((port.protocol, port.node_port))


def _take(service: Service, index: int, number: int, ports: _Ports) -> None:
    """Raises StatusError 422."""
    if (why := ports.take(number)) is not None:
        raise _invalid(service, invalid_field(f"spec.ports[{index}].nodePort", number, why))


def _give_health_check(spec: ServiceSpec, ports: _Ports) -> None:
    """Raises StatusError 500."""
    number = spec.health_check_node_port
    if not number:
        spec.health_check_node_port = ports.any("HealthCheck NodePort 0")
    elif (why := ports.take(number)) is not None:
        raise not_allocated(f"failed to allocate requested HealthCheck NodePort {number}: {why}")


def _invalid(service: Service, fault: Cause) -> StatusError:
    return invalid("Service", service.metadata.name, [fault])
