"""Faults of what only a load balancer's service has: who may reach it, its class, where it is reached."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from podling.apiserver.registry.field import (
    all_invalid,
    forbidden,
    invalid,
    not_supported,
    required,
)
from podling.apiserver.registry.ip_addresses import parsed_loosely, validate_cidr, validate_ip
from podling.apiserver.registry.service.needs import LOAD_BALANCER
from podling.model import names
from podling.model.errors import Cause
from podling.model.service import LoadBalancerIngress, Service, ServiceSpec

SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
IP_MODES = ("Proxy", "VIP")
ONLY_HERE = "may only be used when `type` is 'LoadBalancer'"


def validate_load_balancer(service: Service, old: Service | None) -> Iterator[Cause]:
    spec = service.spec
    yield from _validate_source_ranges(service, old)
    if spec.allocate_load_balancer_node_ports is not None and spec.type != LOAD_BALANCER:
        yield forbidden("spec.allocateLoadBalancerNodePorts", ONLY_HERE)
    if spec.load_balancer_class is not None:
        if spec.type == LOAD_BALANCER:
            faults = names.qualified_name(spec.load_balancer_class)
            yield from all_invalid("spec.loadBalancerClass", spec.load_balancer_class, faults)
        else:
            yield forbidden("spec.loadBalancerClass", ONLY_HERE)


def validate_class_update(new: ServiceSpec, old: ServiceSpec) -> Iterator[Cause]:
    both = new.type == old.type == LOAD_BALANCER
    if both and new.load_balancer_class != old.load_balancer_class:
        yield invalid("spec.loadBalancerClass", new.load_balancer_class, "may not change once set")


def validate_load_balancer_status(new: Service, old: Service) -> Iterator[Cause]:
    path, ingresses = "status.loadBalancer.ingress", new.status.load_balancer.ingress
    if ingresses and new.spec.type != LOAD_BALANCER:
        yield forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    standing = {ingress.ip for ingress in old.status.load_balancer.ingress}
    for i, ingress in enumerate(ingresses):
        yield from _validate_ingress(ingress, f"{path}[{i}]", standing)


def _validate_ingress(ingress: LoadBalancerIngress, path: str, standing: AbstractSet[str]) -> Iterator[Cause]:
    if ingress.ip:
        yield from validate_ip(ingress.ip, f"{path}.ip", standing)
    mode = ingress.ip_mode
    if mode is None:
        if ingress.ip:
            yield required(f"{path}.ipMode", "must be specified when `ip` is set")
    elif not ingress.ip:
        yield forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set")
    elif mode not in IP_MODES:
        yield not_supported(f"{path}.ipMode", mode, IP_MODES)
    if ingress.hostname:
        faults = names.dns1123_subdomain(ingress.hostname)
        yield from all_invalid(f"{path}.hostname", ingress.hostname, faults)
        if parsed_loosely(ingress.hostname) is not None:
            yield invalid(f"{path}.hostname", ingress.hostname, "must be a DNS name, not an IP address")


def _validate_source_ranges(service: Service, old: Service | None) -> Iterator[Cause]:
    """Of the field, or of the annotation it has taken the place of. Spaces around a value are let pass."""
    ranges, noted = service.spec.load_balancer_source_ranges, _annotated(service)
    before = None if old is None else old.spec.load_balancer_source_ranges or _annotated(old)
    standing = {one.strip() for one in before or ()}
    # Here, and only here, Kubernetes writes a field with a capital.
    path = "spec.LoadBalancerSourceRanges" if ranges else f"metadata.annotations[{SOURCE_RANGES}]"
    if (ranges or noted is not None) and service.spec.type != LOAD_BALANCER:
        yield forbidden(path, ONLY_HERE)
    for i, value in enumerate(ranges or noted or ()):
        yield from validate_cidr(value.strip(), f"{path}[{i}]" if ranges else path, standing)


def _annotated(service: Service) -> list[str] | None:
    value = service.metadata.annotations.get(SOURCE_RANGES)
    if value is None:
        return None
    return value.split(",") if value.strip() else []
