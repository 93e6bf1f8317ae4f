"""Faults of where a service leads its traffic: to the same pod, to pods of the same node, to near ones."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.container.ports import MAX_PORT
from podling.apiserver.registry.field import (
    IMMUTABLE,
    between,
    choice,
    forbidden,
    invalid,
    not_supported,
    one_of,
)
from podling.apiserver.registry.service.needs import is_reached_from_outside, needs_health_check
from podling.model.errors import Cause
from podling.model.service import ServiceSpec

AFFINITIES = ("ClientIP", "None")
POLICIES = ("Cluster", "Local")
DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
LONGEST_STICKY = 86400


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
    yield from _validate_external(spec)
    yield from choice("spec.internalTrafficPolicy", spec.internal_traffic_policy, POLICIES)
    yield from choice("spec.trafficDistribution", spec.traffic_distribution, DISTRIBUTIONS)


def validate_traffic_update(new: ServiceSpec, old: ServiceSpec) -> Iterator[Cause]:
    both = needs_health_check(new) and needs_health_check(old)
    if both and new.health_check_node_port != old.health_check_node_port:
        yield forbidden("spec.healthCheckNodePort", IMMUTABLE)


def _validate_external(spec: ServiceSpec) -> Iterator[Cause]:
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
