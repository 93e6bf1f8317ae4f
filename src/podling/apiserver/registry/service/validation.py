"""What is wrong with a service."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry import metadata
from podling.apiserver.registry.container.handler_validation import validate_port
from podling.apiserver.registry.container.ports import MAX_PORT
from podling.apiserver.registry.field import (
    all_invalid,
    between,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
)
from podling.apiserver.registry.service.addresses import (
    validate_address_update,
    validate_addresses,
    validate_external_addresses,
)
from podling.apiserver.registry.service.load_balancer import validate_class_update, validate_load_balancer
from podling.apiserver.registry.service.needs import (
    CLUSTER_IP,
    EXTERNAL,
    HEADLESS,
    TYPES,
    is_headless,
    needs_node_ports,
)
from podling.apiserver.registry.service.traffic import (
    validate_affinity,
    validate_traffic,
    validate_traffic_update,
)
from podling.model import names
from podling.model.enums import ENUMS
from podling.model.errors import Cause
from podling.model.service import Service, ServicePort, ServiceSpec

PROTOCOLS = ENUMS["ServicePort", "protocol"]
HINTS, TOPOLOGY_MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"


def validate_service(service: Service, old: Service | None) -> Iterator[Cause]:
    """`old` is what the service was before: what stood there is not judged again."""
    spec = service.spec
    yield from metadata.validate(service.metadata, name_rule=names.dns1035_label)
    yield from _validate_topology(service.metadata.annotations)
    if not spec.ports and not is_headless(spec) and spec.type != EXTERNAL:
        yield required("spec.ports")
    yield from _validate_type(spec)
    yield from _validate_ports(spec)
    yield from metadata.validate_labels(spec.selector, "spec.selector")
    yield from validate_affinity(spec)
    yield from validate_addresses(spec, frozenset(old.spec.cluster_ips if old else ()))
    yield from validate_external_addresses(spec, frozenset(old.spec.external_ips if old else ()))
    yield from one_of("spec.type", spec.type, TYPES)
    yield from _validate_unique(spec)
    yield from validate_load_balancer(service, old)
    yield from validate_traffic(spec)


def validate_service_update(new: Service, old: Service) -> Iterator[Cause]:
    yield from metadata.validate_update(new.metadata, old.metadata)
    yield from validate_address_update(new.spec, old.spec)
    yield from validate_class_update(new.spec, old.spec)
    yield from validate_traffic_update(new.spec, old.spec)


def _validate_topology(annotations: dict[str, str]) -> Iterator[Cause]:
    """The newer of two annotations that mean the same."""
    hints, mode = annotations.get(HINTS), annotations.get(TOPOLOGY_MODE)
    if hints is not None and mode is not None and hints != mode:
        why = f"must match annotations[{HINTS}] when both are specified"
        yield invalid(f"metadata.annotations[{TOPOLOGY_MODE}]", mode, why)


def _validate_type(spec: ServiceSpec) -> Iterator[Cause]:
    if needs_node_ports(spec) and is_headless(spec):
        why = f"may not be set to 'None' for {spec.type} services"
        yield invalid("spec.clusterIPs[0]", HEADLESS, why)
    if spec.type != EXTERNAL:
        return
    for wire, value in (
        ("clusterIPs", spec.cluster_ips),
        ("ipFamilies", spec.ip_families),
        ("ipFamilyPolicy", spec.ip_family_policy),
    ):
        if value:
            yield forbidden(f"spec.{wire}", "may not be set for ExternalName services")
    if cname := spec.external_name.removesuffix("."):
        yield from all_invalid("spec.externalName", cname, names.dns1123_subdomain(cname))
    else:
        yield required("spec.externalName")


def _validate_ports(spec: ServiceSpec) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, port in enumerate(spec.ports):
        path = f"spec.ports[{i}]"
        if port.name:
            yield from all_invalid(f"{path}.name", port.name, names.dns1123_label(port.name))
            if port.name in seen:
                yield duplicate(f"{path}.name", port.name)
            seen.add(port.name)
        elif len(spec.ports) > 1:
            yield required(f"{path}.name")
        yield from _validate_port(port, path)


def _validate_port(port: ServicePort, path: str) -> Iterator[Cause]:
    yield from between(f"{path}.port", port.port, 1, MAX_PORT)
    if port.protocol not in PROTOCOLS:
        yield not_supported(f"{path}.protocol", port.protocol, PROTOCOLS)
    yield from validate_port(port.target_port, f"{path}.targetPort")
    if port.app_protocol is not None:
        yield from all_invalid(
            f"{path}.appProtocol", port.app_protocol, names.qualified_name(port.app_protocol)
        )


def _validate_unique(spec: ServiceSpec) -> Iterator[Cause]:
    """A port is one of a protocol, on the service and on the nodes alike."""
    if spec.type == CLUSTER_IP:
        for i, port in enumerate(spec.ports):
            if port.node_port:
                yield forbidden(f"spec.ports[{i}].nodePort", "may not be used when `type` is 'ClusterIP'")
    given: set[tuple[str, int]] = set()
    for i, port in enumerate(spec.ports):
        if port.node_port and (port.protocol, port.node_port) in given:
            yield duplicate(f"spec.ports[{i}].nodePort", port.node_port)
        given.add((port.protocol, port.node_port))
    seen: set[tuple[str, int]] = set()
    for i, port in enumerate(spec.ports):
        if (port.protocol, port.port) in seen:
            yield duplicate(f"spec.ports[{i}]", ServicePort(protocol=port.protocol, port=port.port))
        seen.add((port.protocol, port.port))
