"""Where a service can be reached without its address: at its ready endpoints."""

from __future__ import annotations

from collections.abc import Iterable

from podling.model.types.discovery import EndpointSlice
from podling.model.types.service import Service

API_SERVICE, API_NAMESPACE = "kubernetes", "default"
"""The service of the API servers, which has endpoints and a slice of that name."""
SERVICE_NAME = "kubernetes.io/service-name"
"""The label of an EndpointSlice that names its service."""


class NoEndpoint(Exception):
    """Says why there is nobody to ask, in Kubernetes' words."""


def endpoints_of(
    name: str, port: int, service: Service | None, slices: Iterable[EndpointSlice]
) -> list[tuple[str, int]]:
    """Addresses and ports behind `port` of the service of that name, at least one; `slices` may have those of
    other services of its namespace. Raises NoEndpoint."""
    if service is None:
        raise NoEndpoint(f'service "{name}" not found')
    if service.spec.type == "ExternalName":
        return [(service.spec.external_name, port)]
    declared = next((one for one in service.spec.ports if one.port == port), None)
    if declared is None:
        raise NoEndpoint(f'no service port {port} found for service "{name}"')
    found = [
        (address, number)
        for part in slices
        if part.metadata.labels.get(SERVICE_NAME) == name
        for named in part.ports
        if (named.name or "") == declared.name and (number := named.port)
        for one in part.endpoints
        if one.conditions.ready is not False
        for address in one.addresses[:1]
    ]
    if not found:
        raise NoEndpoint(f'no endpoints available for service "{name}"')
    return found
