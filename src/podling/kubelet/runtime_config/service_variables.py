"""The variables by which containers find services (enableServiceLinks). Pure.

For each service with a cluster address: `NAME_SERVICE_HOST`, `NAME_SERVICE_PORT` (that of its first port),
`NAME_SERVICE_PORT_PORTNAME`, and those that Docker's links once set (`NAME_PORT_80_TCP_ADDR` …). The API
server's own service is told of always, as clients inside pods look for it there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from podling.model.pod import Pod
from podling.model.service import Service, ServicePort

API_SERVICE = ("default", "kubernetes")
NO_ADDRESS = ("", "None")
"""Cluster addresses of services that lead elsewhere, and of headless ones."""


class Place(NamedTuple):
    host: str
    port: int


def service_variables(pod: Pod, services: Iterable[Service], api_server: Place | None) -> dict[str, str]:
    """What containers of the pod are told. `api_server` is where pods reach the API server while nothing
    answers at its service's cluster address; None when that is answered."""
    return {
        name: value
        for service in _told_of(pod, services)
        for name, value in _variables(service, api_server if _key(service) == API_SERVICE else None)
    }


def _told_of(pod: Pod, services: Iterable[Service]) -> list[Service]:
    """By name: the pod's own namespace goes before the API server's service, should it have one that is named
    like it."""
    chosen: dict[str, Service] = {}
    for service in services:
        if service.spec.cluster_ip in NO_ADDRESS:
            continue
        namespace, name = _key(service)
        if namespace == pod.metadata.namespace and pod.spec.enable_service_links is not False:
            chosen[name] = service
        elif (namespace, name) == API_SERVICE:
            chosen.setdefault(name, service)
    return [chosen[name] for name in sorted(chosen)]


def _variables(service: Service, instead: Place | None) -> Iterator[tuple[str, str]]:
    prefix, ports = _name(service.metadata.name), service.spec.ports
    places = [instead or Place(service.spec.cluster_ip, port.port) for port in ports]
    if not ports:
        return
    yield f"{prefix}_SERVICE_HOST", places[0].host
    yield f"{prefix}_SERVICE_PORT", str(places[0].port)
    for port, place in zip(ports, places, strict=True):
        if port.name:
            yield f"{prefix}_SERVICE_PORT_{_name(port.name)}", str(place.port)
    yield f"{prefix}_PORT", _url(ports[0], places[0])
    for port, place in zip(ports, places, strict=True):
        link = f"{prefix}_PORT_{port.port}_{_protocol(port)}"
        yield link, _url(port, place)
        yield f"{link}_PROTO", _protocol(port).lower()
        yield f"{link}_PORT", str(place.port)
        yield f"{link}_ADDR", place.host


def _name(name: str) -> str:
    return name.replace("-", "_").upper()


def _protocol(port: ServicePort) -> str:
    return port.protocol.upper() or "TCP"


def _url(port: ServicePort, place: Place) -> str:
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"{_protocol(port).lower()}://{host}:{place.port}"


def _key(service: Service) -> tuple[str, str]:
    return service.metadata.namespace, service.metadata.name
