"""What a service's addresses lead to on one node: pure, from the Service, its EndpointSlices and the node.

The choice of endpoints is kube-proxy's: ready ones near enough by their hints, else those that still serve
while they terminate; under a traffic policy of `Local` only those of this node.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from podling.model.types.discovery import Endpoint, EndpointSlice
from podling.model.types.service import Service, ServicePort

PROXY_LABEL = "service.kubernetes.io/service-proxy-name"
HEADLESS_LABEL = "service.kubernetes.io/headless"
SERVICE_LABEL = "kubernetes.io/service-name"
AFFINITY_SECONDS = 10800
"""How long a client stays with its endpoint if the service does not say."""
FAMILIES = {4: "IPv4", 6: "IPv6"}

Backend = tuple[str, int]
"""Address and port of an endpoint."""
Key = tuple[str, str]
"""Namespace and name of a service."""


class Frontend(NamedTuple):
    """Where clients connect to. Without an `address` it is a node port; `protocol` is in lower case."""

    family: str
    protocol: str
    port: int
    address: str = ""


class Behind(msgspec.Struct, frozen=True):
    """What a frontend leads to. `way` is `cluster` for a cluster IP, `outside` for an external address whose
    clients are masqueraded, `local` for one that keeps their addresses; `endpoints` are for all clients but
    those from outside of a `local` one, who get those of `local`.

    `refusal` (`reject`, `drop` or nothing) is for clients for whom there is no endpoint. Only clients in
    `sources`, if any, are let in. `affinity` is for how many seconds a client stays with an endpoint; 0 is
    not at all. `key` and `port` name the service's port.
    """

    key: Key
    port: str
    way: str
    endpoints: tuple[Backend, ...]
    local: tuple[Backend, ...] = ()
    hairpin: tuple[str, ...] = ()
    """The addresses of endpoints on this node: they may be led to themselves."""
    refusal: str = ""
    sources: tuple[str, ...] = ()
    affinity: int = 0


class NodeFacts(msgspec.Struct, frozen=True):
    name: str
    zone: str = ""


def is_proxied(service: Service) -> bool:
    """Whether this proxy is in charge of a service."""
    spec = service.spec
    return (
        spec.type != "ExternalName"
        and spec.cluster_ip not in ("", "None")
        and PROXY_LABEL not in service.metadata.labels
    )


def service_of(one: EndpointSlice) -> Key | None:
    """The service that a slice is for; None if no proxy reads it."""
    labels = one.metadata.labels
    if SERVICE_LABEL not in labels or HEADLESS_LABEL in labels or PROXY_LABEL in labels:
        return None
    return one.metadata.namespace, labels[SERVICE_LABEL]


def frontends(service: Service, slices: Iterable[EndpointSlice], node: NodeFacts) -> dict[Frontend, Behind]:
    """Every frontend of a service, also those that refuse their clients."""
    if not is_proxied(service):
        return {}
    spec, found = service.spec, dict[Frontend, Behind]()
    by_family: dict[str, list[EndpointSlice]] = {}
    for one in slices:
        by_family.setdefault(one.address_type, []).append(one)
    for cluster_ip in spec.cluster_ips or [spec.cluster_ip]:
        family = _family(cluster_ip)
        outer = _outer_addresses(service, family)
        for port in spec.ports:
            chosen = _choose(service, port, by_family.get(family, ()), node)
            protocol = port.protocol.lower() or "tcp"
            found[Frontend(family, protocol, port.port, cluster_ip)] = chosen.inner()
            for address, sources in outer:
                found[Frontend(family, protocol, port.port, address)] = chosen.outer(sources)
            if port.node_port:
                found[Frontend(family, protocol, port.node_port)] = chosen.outer(())
    return found


def _family(address: str) -> str:
    return FAMILIES[ipaddress.ip_address(address).version]


def _outer_addresses(service: Service, family: str) -> list[tuple[str, tuple[str, ...]]]:
    """The external addresses of a family, each with the sources that it is for."""
    spec = service.spec
    addresses: list[tuple[str, tuple[str, ...]]] = [(address, ()) for address in spec.external_ips]
    ranges = [ipaddress.ip_network(one.strip(), strict=False) for one in spec.load_balancer_source_ranges]
    sources = tuple(str(one) for one in ranges if FAMILIES[one.version] == family)
    if spec.type == "LoadBalancer" and (sources or not ranges):
        addresses += [
            (ingress.ip, sources)
            for ingress in service.status.load_balancer.ingress
            # Mode Proxy: the balancer itself is to be asked, also by pods.
            if ingress.ip and ingress.ip_mode in (None, "VIP")
        ]
    return [(address, sources) for address, sources in addresses if _family(address) == family]


class _Chosen(msgspec.Struct, frozen=True):
    """The endpoints of a service's port: those for the whole cluster, and those of this node."""

    service: Service
    name: str
    cluster: tuple[Backend, ...]
    local: tuple[Backend, ...]
    hairpin: tuple[str, ...]

    def inner(self) -> Behind:
        """For clients of the cluster IP."""
        is_local = self.service.spec.internal_traffic_policy == "Local"
        return self._behind("cluster", self.local if is_local else self.cluster, is_local=is_local)

    def outer(self, sources: tuple[str, ...]) -> Behind:
        """For clients of an external address, or of the node's port."""
        if self.service.spec.external_traffic_policy == "Local":
            return self._behind("local", self.cluster, self.local, is_local=True, sources=sources)
        return self._behind("outside", self.cluster, sources=sources)

    def _behind(
        self,
        way: str,
        endpoints: tuple[Backend, ...],
        local: tuple[Backend, ...] = (),
        *,
        is_local: bool = False,
        sources: tuple[str, ...] = (),
    ) -> Behind:
        spec, refusal = self.service.spec, ""
        affinity = 0
        if spec.session_affinity == "ClientIP":
            config = spec.session_affinity_config
            seconds = config.client_ip.timeout_seconds if config and config.client_ip else None
            affinity = seconds or AFFINITY_SECONDS
        if not self.cluster and not self.local:
            refusal = "reject"
        elif is_local and not self.local:
            refusal = "drop"
        meta = self.service.metadata
        return Behind(
            (meta.namespace, meta.name),
            self.name,
            way,
            endpoints,
            local,
            self.hairpin,
            refusal,
            sources,
            affinity,
        )


def _choose(service: Service, port: ServicePort, slices: Sequence[EndpointSlice], node: NodeFacts) -> _Chosen:
    of_port: dict[Backend, Endpoint] = {}
    for one in slices:
        for slice_port in one.ports:
            same = (slice_port.name or "", slice_port.protocol or "TCP") == (
                port.name,
                port.protocol or "TCP",
            )
            if not same or not slice_port.port:
                continue
            for endpoint in one.endpoints:
                if endpoint.addresses:
                    backend = endpoint.addresses[0], slice_port.port
                    # While an endpoint moves from one slice to another, both may have it.
                    if backend not in of_port or _is_ready(endpoint):
                        of_port[backend] = endpoint
    here = {backend: one for backend, one in of_port.items() if one.node_name == node.name}
    cluster = _usable(of_port, lambda ready: _near(ready, node))
    return _Chosen(
        service,
        port.name,
        cluster,
        _usable(here, lambda ready: ready),
        tuple(sorted({address for address, _ in here})),
    )


def _usable(
    endpoints: dict[Backend, Endpoint], near: Callable[[dict[Backend, Endpoint]], dict[Backend, Endpoint]]
) -> tuple[Backend, ...]:
    """Those that are ready and near, else those that serve while they terminate."""
    ready = {backend: one for backend, one in endpoints.items() if _is_ready(one)}
    if ready:
        return tuple(sorted(near(ready)))
    return tuple(sorted(backend for backend, one in endpoints.items() if _serves_at_its_end(one)))


def _is_ready(one: Endpoint) -> bool:
    return one.conditions.ready is not False


def _serves_at_its_end(one: Endpoint) -> bool:
    conditions = one.conditions
    serves = conditions.serving if conditions.serving is not None else conditions.ready is not False
    return bool(serves and conditions.terminating)


def _near(ready: dict[Backend, Endpoint], node: NodeFacts) -> dict[Backend, Endpoint]:
    """Those whose hints are for this node, else for its zone, if every endpoint has such hints and at least
    one is for here; else all."""
    for_node = {b: [h.name for h in e.hints.for_nodes] if e.hints else [] for b, e in ready.items()}
    for_zone = {b: [h.name for h in e.hints.for_zones] if e.hints else [] for b, e in ready.items()}
    for hints, here in ((for_node, node.name), (for_zone, node.zone)):
        if here and all(hints.values()):
            near = {backend: ready[backend] for backend, names in hints.items() if here in names}
            if near:
                return near
    return ready
