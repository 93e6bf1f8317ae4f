"""What is said of a service that is taken, and has what is ignored, goes out of use or is oddly written."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.ip_addresses import warn_of_cidr, warn_of_ip, warn_of_ips
from podling.apiserver.registry.service.needs import EXTERNAL, HEADLESS
from podling.apiserver.registry.service.validation import HINTS, TOPOLOGY_MODE
from podling.model.service import Service, ServiceSpec


def service_warnings(service: Service) -> Iterator[str]:
    spec = service.spec
    if HINTS in service.metadata.annotations:
        yield f"annotation {HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"
    if spec.cluster_ip not in ("", HEADLESS):
        yield from warn_of_ips(spec.cluster_ips, "spec.clusterIPs")
    if _is_headless(spec):
        yield from _ignored_of_headless(spec)
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


def _is_headless(spec: ServiceSpec) -> bool:
    return spec.type == "ClusterIP" and spec.cluster_ip == HEADLESS


def _ignored_of_headless(spec: ServiceSpec) -> Iterator[str]:
    if spec.load_balancer_ip:
        yield "spec.loadBalancerIP is ignored for headless services"
    if spec.external_ips:
        yield "spec.externalIPs is ignored for headless services"
    if spec.session_affinity != "None":
        yield "spec.SessionAffinity is ignored for headless services"
