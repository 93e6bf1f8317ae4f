"""APIServices: whether the server behind one is there, as Kubernetes' aggregator says it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from podling.model.rules.service_endpoints import SERVICE_NAME
from podling.model.time import rfc3339
from podling.model.types.apiregistration import (
    APIServiceCondition,
    APIServiceReference,
    APIServiceStatus,
)
from podling.model.types.discovery import EndpointSlice
from podling.model.types.service import Service

AVAILABLE = "Available"
HTTPS = 443


class Finding(NamedTuple):
    """What the condition says."""

    status: str
    reason: str
    message: str


LOCAL = Finding("True", "Local", "Local APIServices are always available")
PASSED = Finding("True", "Passed", "all checks passed")


def server_name(service: APIServiceReference) -> str:
    """By which the server's certificate must know it."""
    return f"{service.name}.{service.namespace}.svc"


def is_available(status: APIServiceStatus) -> bool:
    return any(one.type == AVAILABLE and one.status == "True" for one in status.conditions)


def obstacle(
    wanted: APIServiceReference, service: Service | None, slices: Sequence[EndpointSlice]
) -> Finding | None:
    """Why the server behind a service need not even be asked. `slices` may have those of other services of
    its namespace."""
    named = f'service/{wanted.name} in "{wanted.namespace}"'
    if service is None:
        return Finding("False", "ServiceNotFound", f"{named} is not present")
    if service.spec.type not in ("", "ClusterIP"):
        return None
    number = wanted.port or HTTPS
    port = next((one for one in service.spec.ports if one.port == number), None)
    if port is None:
        return Finding("False", "ServicePortError", f"{named} is not listening on port {number}")
    own = [one for one in slices if one.metadata.labels.get(SERVICE_NAME) == wanted.name]
    if not own:
        return Finding("False", "EndpointsNotFound", f"cannot find endpointslices for {named}")
    for one in own:
        is_named = any((each.name or "") == port.name for each in one.ports)
        if is_named and any(each.conditions.ready is not False for each in one.endpoints):
            return None
    why = f'endpointslices for {named} have no addresses with port name "{port.name}"'
    return Finding("False", "MissingEndpoints", why)


def failed_check(why: str) -> Finding:
    return Finding("False", "FailedDiscoveryCheck", why)


def set_condition(status: APIServiceStatus, found: Finding, now: datetime) -> None:
    """`now` is the time of the transition, if it is one."""
    for one in status.conditions:
        if one.type == AVAILABLE:
            if one.status != found.status:
                one.status, one.last_transition_time = found.status, rfc3339(now)
            one.reason, one.message = found.reason, found.message
            return
    status.conditions.append(
        APIServiceCondition(AVAILABLE, found.status, rfc3339(now), found.reason, found.message)
    )
