"""Where an address of a service leads on one node, and why nowhere: pure, in lines for people.

What is shown is what the proxy decides from the same objects; `Look` says what the kernel has of it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from podling.model.types.discovery import Endpoint, EndpointSlice
from podling.model.types.service import Service, ServicePort
from podling.network.loopback import KINDS, LOOPBACK
from podling.network.services import (
    PROXY_LABEL,
    Backend,
    Behind,
    Frontend,
    Key,
    NodeFacts,
    frontends,
    is_proxied,
    service_of,
)
from podling.network.table import Shape, rules

Look = Callable[[Shape, str, str], str]
"""The element that the kernel has in a map or set of a table at a key; empty for none."""


class Cluster:
    """The objects that say where services lead to on `node`."""

    def __init__(
        self,
        services: Iterable[Service],
        slices: Iterable[EndpointSlice],
        node: NodeFacts,
        own: Sequence[str],
    ) -> None:
        """`own` are the node's addresses."""
        self.services: dict[Key, Service] = {(s.metadata.namespace, s.metadata.name): s for s in services}
        self.slices: dict[Key, list[EndpointSlice]] = {}
        for one in slices:
            if (key := service_of(one)) is not None:
                self.slices.setdefault(key, []).append(one)
        self.node, self.own = node, own

    def leads(self, key: Key) -> Mapping[Frontend, Behind]:
        return frontends(self.services[key], self.slices.get(key, ()), self.node)


def place_of(text: str) -> tuple[str, int] | None:
    """`ADDRESS:PORT`, also `[ADDRESS]:PORT`; None for what is a name."""
    host, _, port = text.rpartition(":")
    try:
        return str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))), int(port)
    except ValueError:
        return None


def may_have(service: Service, address: str, port: int, own: Sequence[str]) -> bool:
    """Whether an address, or a port of the node, whose addresses are `own`, may be the service's."""
    spec, balancer = service.spec, service.status.load_balancer
    if address in (spec.cluster_ip, *spec.cluster_ips, *spec.external_ips):
        return True
    if any(address == ingress.ip for ingress in balancer.ingress):
        return True
    return address in own and any(one.node_port == port for one in spec.ports)


def explain_address(
    cluster: Cluster, address: str, port: int, shapes: Sequence[Shape], look: Look
) -> list[str]:
    """What every service does that has the address and port."""
    lines: list[str] = []
    near: list[str] = []
    for key in cluster.services:
        of_service = cluster.leads(key)
        found = {
            frontend: behind
            for frontend, behind in of_service.items()
            if frontend.port == port
            and (frontend.address == address or (not frontend.address and address in cluster.own))
        }
        if found:
            lines += [f"{'/'.join(key)}:", *_shown(cluster, key, found, shapes, look)]
        elif any(frontend.address == address for frontend in of_service):
            near.append("/".join(key))
    if lines:
        return lines
    if near:
        return [f"{', '.join(near)} has no port {port} at {address}: connections are refused"]
    for shape in shapes:
        if shape.services and ipaddress.ip_address(address) in ipaddress.ip_network(shape.services):
            return [f"no service has {address}: packets to it are dropped"]
    return [f"no service has {address}, port {port}: it is not led anywhere"]


def explain_service(cluster: Cluster, key: Key, shapes: Sequence[Shape], look: Look) -> list[str]:
    """What all addresses of a service do."""
    service = cluster.services.get(key)
    if service is None:
        return [f"there is no service {'/'.join(key)}"]
    if not is_proxied(service):
        return [f"{'/'.join(key)} {_unproxied(service)}"]
    return [f"{'/'.join(key)}:", *_shown(cluster, key, cluster.leads(key), shapes, look)]


def _unproxied(service: Service) -> str:
    spec = service.spec
    if PROXY_LABEL in service.metadata.labels:
        return f"is left to the proxy {service.metadata.labels[PROXY_LABEL]}"
    if spec.type == "ExternalName":
        return f"has no address: it is another name, {spec.external_name}"
    if spec.cluster_ip == "None":
        return "has no address: it is headless, and its name leads to its endpoints themselves"
    return "has no address yet"


def _shown(
    cluster: Cluster, key: Key, found: Mapping[Frontend, Behind], shapes: Sequence[Shape], look: Look
) -> Iterator[str]:
    service, slices = cluster.services[key], cluster.slices.get(key, [])
    by_family = {shape.family.api: shape for shape in shapes}
    for frontend, behind in found.items():
        protocol = frontend.protocol.upper()
        where = _joined(frontend.address, frontend.port) if frontend.address else f"node port {frontend.port}"
        name = f" ({behind.port})" if behind.port else ""
        yield f"  {where}/{protocol}{name} {_outcome(behind)}"
        if not frontend.address and behind.endpoints and frontend.protocol in KINDS:
            here = LOOPBACK[frontend.family]
            yield f"    at {here} to {len(behind.endpoints)}, passed on by podling itself"
        port = next(p for p in service.spec.ports if p.name == behind.port and p.protocol.upper() == protocol)
        of_family = [one for one in slices if one.address_type == frontend.family]
        yield from (f"    {line}" for line in _endpoints(cluster, service, port, of_family, behind))
        if behind.sources:
            yield f"    only for clients of {', '.join(behind.sources)}"
        if behind.affinity:
            yield f"    a client stays with its endpoint for {behind.affinity} s"
        shape = by_family.get(frontend.family)
        if shape is None:
            yield f"    there is no table of {frontend.family} here"
            continue
        for of, place, wanted in rules(frontend, behind, shape):
            there = look(shape, of, place)
            state = (
                "as it is in the kernel" if there == wanted else f"but the kernel has {there or 'nothing'}"
            )
            yield f"    rule: {of} {{ {wanted} }} of table {shape.family.name} {shape.table}, {state}"


def _outcome(behind: Behind) -> str:
    numbers = f"{len(behind.endpoints)}"
    if behind.way == "local":
        numbers = f"{len(behind.local)} of this node from outside, to {numbers} from pods and the node"
    if behind.refusal == "drop":
        return "drops clients: it leads to this node's endpoints alone, and there is none"
    if behind.refusal:
        return "refuses clients: there is no endpoint to lead to"
    return f"leads to {numbers}"


def _endpoints(
    cluster: Cluster, service: Service, port: ServicePort, slices: Sequence[EndpointSlice], behind: Behind
) -> Iterator[str]:
    chosen = {*behind.endpoints, *behind.local}
    seen = False
    for one in slices:
        numbers = [p.port for p in one.ports if (p.name or "") == port.name and p.port]
        if one.endpoints and not numbers:
            yield f"slice {one.metadata.name} has no port named {port.name!r}"
        for endpoint in one.endpoints:
            seen = True
            for number in numbers:
                backend: Backend = (endpoint.addresses[0], number)
                why = "" if backend in chosen else f"not used, {_why_not(endpoint, behind, cluster.node)}: "
                yield f"{why}{_joined(*backend)}{_of_whom(endpoint, cluster.node)}"
    if not seen:
        selector = ",".join(f"{name}={value}" for name, value in sorted(service.spec.selector.items()))
        pods = f"no pod that has an address is selected by {selector}"
        yield pods if selector else "it selects no pods, and no slice has endpoints for it"


def _why_not(endpoint: Endpoint, behind: Behind, node: NodeFacts) -> str:
    conditions = endpoint.conditions
    if conditions.ready is False:
        return "it is ending" if conditions.terminating else "it is not ready"
    if endpoint.node_name != node.name and behind.way == "cluster" and behind.refusal == "drop":
        return "it is on another node"
    return "others are nearer" if endpoint.hints else "it is on another node"


def _of_whom(endpoint: Endpoint, node: NodeFacts) -> str:
    target, where = endpoint.target_ref, ""
    if endpoint.node_name:
        where = ", here" if endpoint.node_name == node.name else f", on {endpoint.node_name}"
    return f" ({target.kind.lower()} {target.name}){where}" if target else where


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
