"""What a service gets without asking, but for its addresses, which admission gives out."""

from __future__ import annotations

from podling.apiserver.registry.service.needs import (
    CLUSTER_IP,
    EXTERNAL,
    LOAD_BALANCER,
    is_reached_from_outside,
)
from podling.model.service import ClientIPConfig, Service, ServiceSpec, SessionAffinityConfig

STICKY_SECONDS = 3 * 60 * 60
CLUSTER, VIP = "Cluster", "VIP"


def default_service(service: Service) -> None:
    spec = service.spec
    spec.type = spec.type or CLUSTER_IP
    for port in spec.ports:
        port.protocol = port.protocol or "TCP"
        port.target_port = port.target_port or port.port
    _default_affinity(spec)
    if is_reached_from_outside(spec):
        spec.external_traffic_policy = spec.external_traffic_policy or CLUSTER
    if spec.type != EXTERNAL:
        spec.internal_traffic_policy = spec.internal_traffic_policy or CLUSTER
    if spec.type == LOAD_BALANCER:
        _default_load_balancer(service)


def _default_affinity(spec: ServiceSpec) -> None:
    spec.session_affinity = spec.session_affinity or "None"
    if spec.session_affinity == "None":
        spec.session_affinity_config = None
    elif spec.session_affinity == "ClientIP":
        config = spec.session_affinity_config
        if config is None or config.client_ip is None or config.client_ip.timeout_seconds is None:
            spec.session_affinity_config = SessionAffinityConfig(
                client_ip=ClientIPConfig(timeout_seconds=STICKY_SECONDS)
            )


def _default_load_balancer(service: Service) -> None:
    if service.spec.allocate_load_balancer_node_ports is None:
        service.spec.allocate_load_balancer_node_ports = True
    for ingress in service.status.load_balancer.ingress:
        if ingress.ip and ingress.ip_mode is None:
            ingress.ip_mode = VIP
