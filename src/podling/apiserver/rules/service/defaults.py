"""Defaults and warnings of services, and what an update of a service takes over from the old one.

The fields of a service depend on each other, and clients know only some of them: one leaves out the IPs that
were given out, another changes the type and sends everything else back unchanged. The evident intent is
carried out; a field that the client did change is left as it is, for validation to judge.
"""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.rules.addresses import warn_of_cidr, warn_of_ip, warn_of_ips
from podling.apiserver.rules.service.addresses import (
    CLUSTER_IP,
    EXTERNAL,
    HEADLESS,
    LOAD_BALANCER,
    is_reached_from_outside,
    needs_cluster_ip,
    needs_health_check,
    needs_node_ports,
    wants_node_ports,
)
from podling.apiserver.rules.service.service import HINTS, POLICIES, TOPOLOGY_MODE
from podling.model.types.service import (
    ClientIPConfig,
    LoadBalancerStatus,
    Service,
    ServiceSpec,
    SessionAffinityConfig,
)

STICKY_SECONDS = 3 * 60 * 60
CLUSTER, VIP = "Cluster", "VIP"


def default_service(service: Service) -> None:
    spec = service.spec
    spec.type = spec.type or CLUSTER_IP
    for port in spec.ports:
        port.protocol = port.protocol or "TCP"
        port.target_port = port.target_port or port.port
    spec.session_affinity = spec.session_affinity or "None"
    if spec.session_affinity == "None":
        spec.session_affinity_config = None
    elif spec.session_affinity == "ClientIP":
        config = spec.session_affinity_config
        if config is None or config.client_ip is None or config.client_ip.timeout_seconds is None:
            spec.session_affinity_config = SessionAffinityConfig(
                client_ip=ClientIPConfig(timeout_seconds=STICKY_SECONDS)
            )
    if is_reached_from_outside(spec):
        spec.external_traffic_policy = spec.external_traffic_policy or CLUSTER
    if spec.type != EXTERNAL:
        spec.internal_traffic_policy = (
            CLUSTER if spec.internal_traffic_policy is None else spec.internal_traffic_policy
        )
    if spec.type == LOAD_BALANCER:
        if spec.allocate_load_balancer_node_ports is None:
            spec.allocate_load_balancer_node_ports = True
        for ingress in service.status.load_balancer.ingress:
            if ingress.ip and ingress.ip_mode is None:
                ingress.ip_mode = VIP


def service_warnings(service: Service) -> Iterator[str]:
    spec = service.spec
    if HINTS in service.metadata.annotations:
        yield f"annotation {HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"
    if spec.type != EXTERNAL and spec.cluster_ip not in ("", HEADLESS):
        yield from warn_of_ips(spec.cluster_ips, "spec.clusterIPs")
    if _is_headless(spec):
        if spec.load_balancer_ip:
            yield "spec.loadBalancerIP is ignored for headless services"
        if spec.external_ips:
            yield "spec.externalIPs is ignored for headless services"
        if spec.session_affinity != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    yield from warn_of_ips(spec.external_ips, "spec.externalIPs")
    if spec.external_ips and not _is_headless(spec) and spec.type != EXTERNAL:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if spec.load_balancer_ip:
        yield from warn_of_ip(spec.load_balancer_ip, "spec.loadBalancerIP")
    for i, cidr in enumerate(spec.load_balancer_source_ranges):
        yield from warn_of_cidr(cidr, f"spec.loadBalancerSourceRanges[{i}]")
    if spec.type == EXTERNAL and spec.external_ips:
        yield f'spec.externalIPs is ignored when spec.type is "{EXTERNAL}"'
    if spec.type != EXTERNAL and spec.external_name:
        yield f'spec.externalName is ignored when spec.type is not "{EXTERNAL}"'
    if spec.traffic_distribution == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def status_warnings(service: Service) -> Iterator[str]:
    ingresses = service.status.load_balancer.ingress
    yield from warn_of_ips((ingress.ip for ingress in ingresses), "status.loadBalancer.ingress")


def _is_headless(spec: ServiceSpec) -> bool:
    return spec.type == "ClusterIP" and spec.cluster_ip == HEADLESS


def carry_over(new: Service, old: Service) -> None:
    _keep_given_out(new.spec, old.spec)
    # `clusterIP` and `clusterIPs` say the same; who changes only one means both.
    if new.spec.cluster_ip == old.spec.cluster_ip:
        new.spec.cluster_ips = new.spec.cluster_ips or list(old.spec.cluster_ips)
    elif new.spec.cluster_ips == old.spec.cluster_ips or (
        not new.spec.cluster_ips and needs_cluster_ip(new.spec)
    ):
        new.spec.cluster_ips = [new.spec.cluster_ip] if new.spec.cluster_ip else []
    _drop_what_the_type_has_not(new.spec, old.spec)
    drop_internal_policy(new.spec)
    if new.spec.type != LOAD_BALANCER:
        new.status.load_balancer = LoadBalancerStatus()


def name_all_addresses(new: ServiceSpec) -> None:
    """Of a new service: an older client names only the first."""
    if new.cluster_ip and not new.cluster_ips:
        new.cluster_ips = [new.cluster_ip]


def drop_internal_policy(spec: ServiceSpec) -> None:
    """To a name of elsewhere no traffic is routed. What is no policy stays, and is refused."""
    if spec.type == EXTERNAL and spec.internal_traffic_policy in POLICIES:
        spec.internal_traffic_policy = None


def _keep_given_out(new: ServiceSpec, old: ServiceSpec) -> None:
    if needs_cluster_ip(new) and needs_cluster_ip(old):
        new.cluster_ip = new.cluster_ip or old.cluster_ip
        if not new.cluster_ips and new.cluster_ip == old.cluster_ip:
            new.cluster_ips = list(old.cluster_ips)
    if needs_node_ports(old) and wants_node_ports(new):
        # Each port's, by name, unless another has it now.
        used = _node_ports(new) & _node_ports(old)
        before = {port.name: port.node_port for port in old.ports}
        for port in new.ports:
            kept = before.get(port.name, 0)
            if not port.node_port and kept not in used:
                port.node_port = kept
    if needs_health_check(new) and needs_health_check(old):
        new.health_check_node_port = new.health_check_node_port or old.health_check_node_port


def _drop_what_the_type_has_not(new: ServiceSpec, old: ServiceSpec) -> None:
    if needs_cluster_ip(old) and not needs_cluster_ip(new):
        if (new.cluster_ip, new.cluster_ips) == (old.cluster_ip, old.cluster_ips):
            new.cluster_ip, new.cluster_ips = "", []
        _drop_same(new, old, "ip_families", [])
        _drop_same(new, old, "ip_family_policy", None)
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


def _drop_same(new: ServiceSpec, old: ServiceSpec, attribute: str, nothing: object) -> None:
    if getattr(new, attribute) == getattr(old, attribute):
        setattr(new, attribute, nothing)


def _node_ports(spec: ServiceSpec) -> set[int]:
    return {port.node_port for port in spec.ports if port.node_port}
