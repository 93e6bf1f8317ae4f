"""What the type of a service calls for: addresses, ports of the nodes, a port to ask after its health at."""

from __future__ import annotations

from podling.model.service import ServiceSpec

CLUSTER_IP, NODE_PORT, LOAD_BALANCER, EXTERNAL = "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"
TYPES = (CLUSTER_IP, EXTERNAL, LOAD_BALANCER, NODE_PORT)
HEADLESS = "None"
"""The cluster address of a service that has none."""
LOCAL = "Local"


def needs_cluster_ip(spec: ServiceSpec) -> bool:
    """Even to be headless is to need an address field."""
    return spec.type != EXTERNAL


def is_headless(spec: ServiceSpec) -> bool:
    return spec.cluster_ips == [HEADLESS]


def needs_node_ports(spec: ServiceSpec) -> bool:
    return spec.type in (NODE_PORT, LOAD_BALANCER)


def wants_node_ports(spec: ServiceSpec) -> bool:
    """Whether each of its ports is given one; those that are asked for by number are had in any case."""
    return spec.type == NODE_PORT or (
        spec.type == LOAD_BALANCER and spec.allocate_load_balancer_node_ports is not False
    )


def is_reached_from_outside(spec: ServiceSpec) -> bool:
    return needs_node_ports(spec) or (spec.type == CLUSTER_IP and bool(spec.external_ips))


def needs_health_check(spec: ServiceSpec) -> bool:
    """By a load balancer, which must know the nodes that have a pod of the service."""
    return spec.type == LOAD_BALANCER and spec.external_traffic_policy == LOCAL
