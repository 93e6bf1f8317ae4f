"""What an update takes over from the service before, and what it lets go of.

The fields of a service depend on each other, and writers know only some of them: one leaves out what was
given out, another changes the type and sends everything else back as it was. What is plainly meant is done;
what a writer did change himself is left as he wrote it, for validation to judge.
"""

from __future__ import annotations

from podling.apiserver.registry.service.needs import (
    LOAD_BALANCER,
    is_reached_from_outside,
    needs_cluster_ip,
    needs_health_check,
    needs_node_ports,
)
from podling.model.service import LoadBalancerStatus, Service, ServiceSpec


def carry_over(new: Service, old: Service) -> None:
    _keep_given_out(new.spec, old.spec)
    _agree_on_addresses(new.spec, old.spec)
    _drop_what_the_type_has_not(new.spec, old.spec)
    if new.spec.type != LOAD_BALANCER:
        new.status.load_balancer = LoadBalancerStatus()


def name_all_addresses(new: ServiceSpec) -> None:
    """Of a new service: an older client names only the first."""
    if new.cluster_ip and not new.cluster_ips:
        new.cluster_ips = [new.cluster_ip]


def _keep_given_out(new: ServiceSpec, old: ServiceSpec) -> None:
    if needs_cluster_ip(new) and needs_cluster_ip(old):
        new.cluster_ip = new.cluster_ip or old.cluster_ip
        if not new.cluster_ips and new.cluster_ip == old.cluster_ip:
            new.cluster_ips = list(old.cluster_ips)
    if needs_node_ports(new) and needs_node_ports(old):
        _keep_node_ports(new, old)
    if needs_health_check(new) and needs_health_check(old):
        new.health_check_node_port = new.health_check_node_port or old.health_check_node_port


def _keep_node_ports(new: ServiceSpec, old: ServiceSpec) -> None:
    """Each port's, by name, unless another has it now."""
    used = _node_ports(new) & _node_ports(old)
    before = {port.name: port.node_port for port in old.ports}
    for port in new.ports:
        kept = before.get(port.name, 0)
        if not port.node_port and kept not in used:
            port.node_port = kept


def _agree_on_addresses(new: ServiceSpec, old: ServiceSpec) -> None:
    """`clusterIP` and `clusterIPs` say the same; who changes only one means both."""
    if new.cluster_ip == old.cluster_ip:
        new.cluster_ips = new.cluster_ips or list(old.cluster_ips)
    elif new.cluster_ips == old.cluster_ips:
        new.cluster_ips = [new.cluster_ip] if new.cluster_ip else []


def _drop_what_the_type_has_not(new: ServiceSpec, old: ServiceSpec) -> None:
    if needs_cluster_ip(old) and not needs_cluster_ip(new):
        _drop_addresses(new, old)
    if needs_node_ports(old) and not needs_node_ports(new) and _node_ports(new) <= _node_ports(old):
        for port in new.ports:
            port.node_port = 0
    if needs_health_check(old) and not needs_health_check(new):
        _drop_same(new, old, "health_check_node_port", 0)
    if old.type == LOAD_BALANCER and new.type != LOAD_BALANCER:
        _drop_same(new, old, "allocate_load_balancer_node_ports", None)
        _drop_same(new, old, "load_balancer_class", None)
    if is_reached_from_outside(old) and not is_reached_from_outside(new):
        _drop_same(new, old, "external_traffic_policy", "")


def _drop_addresses(new: ServiceSpec, old: ServiceSpec) -> None:
    if (new.cluster_ip, new.cluster_ips) == (old.cluster_ip, old.cluster_ips):
        new.cluster_ip, new.cluster_ips = "", []
    _drop_same(new, old, "ip_families", [])
    _drop_same(new, old, "ip_family_policy", None)


def _drop_same(new: ServiceSpec, old: ServiceSpec, attribute: str, nothing: object) -> None:
    if getattr(new, attribute) == getattr(old, attribute):
        setattr(new, attribute, nothing)


def _node_ports(spec: ServiceSpec) -> set[int]:
    return {port.node_port for port in spec.ports if port.node_port}
