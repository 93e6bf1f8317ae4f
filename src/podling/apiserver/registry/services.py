"""Services. Their addresses and node ports are given out by admission; here they only stay what they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME, NONE, joined, labels_text, or_none
from podling.apiserver.registry.container.handler_validation import validate_port
from podling.apiserver.registry.container.ports import MAX_PORT
from podling.apiserver.registry.field import (
    all_invalid,
    between,
    duplicate,
    invalid,
    not_supported,
    one_of,
    required,
)
from podling.apiserver.registry.ip_addresses import parsed_loosely, unsuitable, validate_ip
from podling.apiserver.registry.kind import PROXY_VERBS, Column, Connect, Kind, Part, Subresource
from podling.apiserver.registry.service_warnings import EXTERNAL, HEADLESS, service_warnings
from podling.model import names
from podling.model.enums import ENUMS
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.service import Service, ServicePort, ServiceSpec

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
PROTOCOLS = ENUMS["ServicePort", "protocol"]
AFFINITIES = ("ClientIP", "None")
WITH_NODE_PORTS = ("LoadBalancer", "NodePort")


class _Status(Part[Service]):
    name = "status"

    def prepare_update(self, new: Service, old: Service) -> None:
        new.spec = old.spec

    def validate_update(self, new: Service, old: Service) -> list[Cause]:
        return metadata.validate_update(new.metadata, old.metadata)


class Services(Kind[Service]):
    resource = resource_of(Service)
    returns_deleted = True
    subresources: Mapping[str, Subresource] = {
        "proxy": Connect("proxy", "ServiceProxyOptions", PROXY_VERBS, has_path=True),
        "status": _Status(),
    }
    columns = (
        NAME,
        Column("Type", description="From where the service can be reached."),
        Column("Cluster-IP", description="Address within the cluster."),
        Column("External-IP", description="Addresses outside the cluster."),
        Column("Port(s)", description="Ports, with those of the nodes, and protocols."),
        AGE,
        Column("Selector", description="Labels of the pods behind it.", priority=1),
    )
    selectable_fields = {
        "spec.clusterIP": lambda service: service.spec.cluster_ip,
        "spec.type": lambda service: service.spec.type,
    }

    def default(self, obj: Service) -> None:
        spec = obj.spec
        spec.type = spec.type or "ClusterIP"
        spec.session_affinity = spec.session_affinity or "None"
        for port in spec.ports:
            port.protocol = port.protocol or "TCP"
            port.target_port = port.target_port or port.port
        if spec.type == EXTERNAL:
            return
        spec.internal_traffic_policy = spec.internal_traffic_policy or "Cluster"
        spec.cluster_ips = spec.cluster_ips or ([spec.cluster_ip] if spec.cluster_ip else [])
        spec.ip_families = spec.ip_families or ["IPv4"]
        spec.ip_family_policy = spec.ip_family_policy or "SingleStack"

    def prepare_create(self, obj: Service, now: datetime) -> None:
        obj.status = type(obj.status)()

    def prepare_update(self, new: Service, old: Service) -> None:
        new.status = old.status
        keep_allocated(new.spec, old.spec)

    def validate(self, obj: Service) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata, name_rule=names.dns1035_label),
            *_validate_spec(obj.spec, ServiceSpec()),
        ]

    def validate_changed(self, new: Service, old: Service) -> list[Cause]:
        return [
            *metadata.validate(new.metadata, name_rule=names.dns1035_label),
            *_validate_spec(new.spec, old.spec),
        ]

    def validate_update(self, new: Service, old: Service) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        kept = EXTERNAL not in (new.spec.type, old.spec.type)
        if kept and old.spec.cluster_ips and new.spec.cluster_ips != old.spec.cluster_ips:
            causes.append(invalid("spec.clusterIPs[0]", new.spec.cluster_ips, "may not change once set"))
        return causes

    def warnings(self, obj: Service) -> list[str]:
        return list(service_warnings(obj))

    def row(self, obj: Service, now: datetime) -> list[Any]:
        return [
            obj.metadata.name,
            obj.spec.type,
            or_none(obj.spec.cluster_ip),
            _external(obj),
            joined(map(_port, obj.spec.ports)),
            age(obj.metadata.creation_timestamp, now),
            labels_text(obj.spec.selector),
        ]


def keep_allocated(new: ServiceSpec, old: ServiceSpec) -> None:
    """A writer may leave out what was given out; a type that needs none gives it back."""
    if EXTERNAL not in (new.type, old.type) and not new.cluster_ip:
        new.cluster_ip, new.cluster_ips = old.cluster_ip, list(old.cluster_ips)
    if new.type not in WITH_NODE_PORTS or old.type not in WITH_NODE_PORTS:
        return
    taken = {port.node_port for port in new.ports if port.node_port}
    standing = {(port.protocol, port.port): port.node_port for port in old.ports}
    for port in new.ports:
        before = standing.get((port.protocol, port.port), 0)
        if not port.node_port and before not in taken:
            port.node_port = before


def _external(service: Service) -> str:
    spec = service.spec
    if spec.type == EXTERNAL:
        return or_none(spec.external_name)
    balancers = [entry.ip or entry.hostname for entry in service.status.load_balancer.ingress]
    if spec.type == "LoadBalancer":
        return ",".join([*balancers, *spec.external_ips]) or "<pending>"
    return joined(spec.external_ips) if spec.external_ips else NONE


def _port(port: ServicePort) -> str:
    number = f"{port.port}:{port.node_port}" if port.node_port else str(port.port)
    return f"{number}/{port.protocol}"


def _validate_spec(spec: ServiceSpec, old: ServiceSpec) -> Iterator[Cause]:
    yield from one_of("spec.type", spec.type, TYPES)
    yield from one_of("spec.sessionAffinity", spec.session_affinity, AFFINITIES)
    yield from metadata.validate_labels(spec.selector, "spec.selector")
    if spec.type == EXTERNAL:
        if not spec.external_name:
            yield required("spec.externalName")
        else:
            faults = names.dns1123_subdomain(spec.external_name.removesuffix("."))
            yield from all_invalid("spec.externalName", spec.external_name, faults)
    elif not spec.ports and spec.cluster_ip != HEADLESS:
        yield required("spec.ports")
    seen: set[str] = set()
    yield from _validate_addresses(spec, old)
    for i, port in enumerate(spec.ports):
        yield from _validate_port(port, f"spec.ports[{i}]", named=len(spec.ports) > 1)
        if port.name and port.name in seen:
            yield duplicate(f"spec.ports[{i}].name", port.name)
        seen.add(port.name)


def _validate_addresses(spec: ServiceSpec, old: ServiceSpec) -> Iterator[Cause]:
    if spec.cluster_ip and spec.cluster_ip != HEADLESS:
        yield from validate_ip(spec.cluster_ip, "spec.clusterIPs[0]", old.cluster_ips)
    for i, address in enumerate(spec.external_ips):
        where = f"spec.externalIPs[{i}]"
        if faults := list(validate_ip(address, where, old.external_ips)):
            yield from faults
        elif (meant := parsed_loosely(address)) is not None:
            yield from all_invalid(where, address, unsuitable(meant))


def _validate_port(port: ServicePort, path: str, *, named: bool) -> Iterator[Cause]:
    if named and not port.name:
        yield required(f"{path}.name")
    elif port.name:
        yield from all_invalid(f"{path}.name", port.name, names.dns1123_label(port.name))
    yield from between(f"{path}.port", port.port, 1, MAX_PORT)
    if port.protocol not in PROTOCOLS:
        yield not_supported(f"{path}.protocol", port.protocol, PROTOCOLS)
    yield from validate_port(port.target_port, f"{path}.targetPort")
