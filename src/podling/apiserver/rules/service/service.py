"""Validation of services: type and ports, session affinity and traffic policies, and the fields of load
balancers.
"""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.rules import metadata
from podling.apiserver.rules.addresses import parsed_loosely, validate_cidr, validate_ip
from podling.apiserver.rules.container.mounts import MAX_PORT, validate_port
from podling.apiserver.rules.field import (
    IMMUTABLE,
    all_invalid,
    between,
    choice,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_supported,
    one_of,
    required,
)
from podling.apiserver.rules.service.addresses import (
    CLUSTER_IP,
    EXTERNAL,
    HEADLESS,
    LOAD_BALANCER,
    TYPES,
    is_headless,
    is_reached_from_outside,
    needs_health_check,
    needs_node_ports,
    validate_address_update,
    validate_addresses,
    validate_external_addresses,
)
from podling.model import names
from podling.model.enums import ENUMS
from podling.model.errors import Cause
from podling.model.types.service import Service, ServicePort, ServiceSpec

AFFINITIES = ("ClientIP", "None")
POLICIES = ("Cluster", "Local")
DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
LONGEST_STICKY = 86400

SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
IP_MODES = ("Proxy", "VIP")
ONLY_HERE = "may only be used when `type` is 'LoadBalancer'"

PROTOCOLS = ENUMS["ServicePort", "protocol"]
HINTS, TOPOLOGY_MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"


def validate_affinity(spec: ServiceSpec) -> Iterator[Cause]:
    """Of a service with defaults: one that is sticky says for how long."""
    yield from one_of("spec.sessionAffinity", spec.session_affinity, AFFINITIES)
    config = spec.session_affinity_config
    if spec.session_affinity == "ClientIP" and config is not None and config.client_ip is not None:
        seconds = config.client_ip.timeout_seconds or 0
        if not 0 < seconds <= LONGEST_STICKY:
            path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            yield invalid(path, seconds, f"must be greater than 0 and less than {LONGEST_STICKY}")


def validate_traffic(spec: ServiceSpec) -> Iterator[Cause]:
    path, policy = "spec.externalTrafficPolicy", spec.external_traffic_policy
    if not is_reached_from_outside(spec):
        if policy:
            yield invalid(path, policy, "may only be set for externally-accessible services")
    elif policy not in POLICIES:
        yield not_supported(path, policy, POLICIES)
    path, port = "spec.healthCheckNodePort", spec.health_check_node_port
    if needs_health_check(spec):
        yield from between(path, port, 1, MAX_PORT) if port else ()
    elif port:
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid(path, port, why)
    yield from choice("spec.internalTrafficPolicy", spec.internal_traffic_policy, POLICIES)
    yield from choice("spec.trafficDistribution", spec.traffic_distribution, DISTRIBUTIONS)


def validate_traffic_update(new: ServiceSpec, old: ServiceSpec) -> Iterator[Cause]:
    both = needs_health_check(new) and needs_health_check(old)
    if both and new.health_check_node_port != old.health_check_node_port:
        yield forbidden("spec.healthCheckNodePort", IMMUTABLE)


def validate_load_balancer(service: Service, old: Service | None) -> Iterator[Cause]:
    spec = service.spec
    # Of the field, or of the annotation it has taken the place of. Spaces around a value are let pass.
    ranges, noted = service.spec.load_balancer_source_ranges, _annotated(service)
    before = None if old is None else old.spec.load_balancer_source_ranges or _annotated(old)
    standing = {one.strip() for one in before or ()}
    # Here, and only here, Kubernetes writes a field with a capital.
    path = "spec.LoadBalancerSourceRanges" if ranges else f"metadata.annotations[{SOURCE_RANGES}]"
    if (ranges or noted is not None) and service.spec.type != LOAD_BALANCER:
        yield forbidden(path, ONLY_HERE)
    for i, value in enumerate(ranges or noted or ()):
        yield from validate_cidr(value.strip(), f"{path}[{i}]" if ranges else path, standing)
    if spec.allocate_load_balancer_node_ports is not None and spec.type != LOAD_BALANCER:
        yield forbidden("spec.allocateLoadBalancerNodePorts", ONLY_HERE)
    yield from validate_class(spec)


def validate_class(new: ServiceSpec, old: ServiceSpec | None = None) -> Iterator[Cause]:
    path, named = "spec.loadBalancerClass", new.load_balancer_class
    if old is not None and new.type == old.type == LOAD_BALANCER and named != old.load_balancer_class:
        yield invalid(path, named, "may not change once set")
    if named is not None and new.type == LOAD_BALANCER:
        yield from all_invalid(path, named, names.qualified_name(named))
    elif named is not None:
        yield forbidden(path, ONLY_HERE)


def validate_load_balancer_status(new: Service, old: Service) -> Iterator[Cause]:
    path, ingresses = "status.loadBalancer.ingress", new.status.load_balancer.ingress
    if ingresses and new.spec.type != LOAD_BALANCER:
        yield forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    standing = {ingress.ip for ingress in old.status.load_balancer.ingress}
    for i, ingress in enumerate(ingresses):
        where = f"{path}[{i}]"
        if ingress.ip:
            yield from validate_ip(ingress.ip, f"{where}.ip", standing)
        mode = ingress.ip_mode
        if mode is None:
            if ingress.ip:
                yield required(f"{where}.ipMode", "must be specified when `ip` is set")
        elif not ingress.ip:
            yield forbidden(f"{where}.ipMode", "may not be specified when `ip` is not set")
        elif mode not in IP_MODES:
            yield not_supported(f"{where}.ipMode", mode, IP_MODES)
        if ingress.hostname:
            faults = names.dns1123_subdomain(ingress.hostname)
            yield from all_invalid(f"{where}.hostname", ingress.hostname, faults)
            if parsed_loosely(ingress.hostname) is not None:
                yield invalid(f"{where}.hostname", ingress.hostname, "must be a DNS name, not an IP address")


def _annotated(service: Service) -> list[str] | None:
    value = service.metadata.annotations.get(SOURCE_RANGES)
    if value is None:
        return None
    return value.split(",") if value.strip() else []


def validate_service(service: Service, old: Service | None) -> Iterator[Cause]:
    """`old` is what the service was before: what stood there is not judged again."""
    spec = service.spec
    yield from metadata.validate(service.metadata, name_rule=names.dns1123_label)
    # The newer of two annotations that mean the same.
    annotations = service.metadata.annotations
    hints, mode = annotations.get(HINTS), annotations.get(TOPOLOGY_MODE)
    if hints is not None and mode is not None and hints != mode:
        why = f"must match annotations[{HINTS}] when both are specified"
        yield invalid(f"metadata.annotations[{TOPOLOGY_MODE}]", mode, why)
    if not spec.ports and not is_headless(spec) and spec.type != EXTERNAL:
        yield required("spec.ports")
    if needs_node_ports(spec) and is_headless(spec):
        why = f"may not be set to 'None' for {spec.type} services"
        yield invalid("spec.clusterIPs[0]", HEADLESS, why)
    if spec.type == EXTERNAL:
        for wire, value in (
            ("clusterIPs", spec.cluster_ips),
            ("ipFamilies", spec.ip_families),
            ("ipFamilyPolicy", spec.ip_family_policy),
        ):
            if value not in ([], None):
                yield forbidden(f"spec.{wire}", "may not be set for ExternalName services")
        if cname := spec.external_name.removesuffix("."):
            yield from all_invalid("spec.externalName", cname, names.dns1123_subdomain(cname))
        else:
            yield required("spec.externalName")
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
    yield from validate_class(new.spec, old.spec)
    yield from validate_traffic_update(new.spec, old.spec)


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
            same = ServicePort(protocol=port.protocol, port=port.port)
            yield duplicate(f"spec.ports[{i}]", internal(same))
        seen.add((port.protocol, port.port))
