"""Which pods stand behind a service, and under which ports: what Endpoints and EndpointSlices share. Pure.

Ports are looked up in app containers and sidecars. Init containers are over when a pod serves, so their ports
are nobody's (R-INIT-8).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from podling.model.container import ContainerPort
from podling.model.pod import Pod
from podling.model.references import ObjectReference
from podling.model.resources import is_sidecar
from podling.model.service import Service, ServicePort

HEADLESS_LABEL = "service.kubernetes.io/headless"


class Port(NamedTuple):
    name: str
    protocol: str
    number: int
    app_protocol: str | None = None


def is_behind(service: Service, pod: Pod, *, terminating: bool) -> bool:
    """Whether `pod` is an endpoint of `service`, ready or not; pods that are ending only if asked for."""
    selector = service.spec.selector
    labels = pod.metadata.labels
    if not selector or any(labels.get(key) != value for key, value in selector.items()):
        return False
    if not pod.status.pod_ip or pod.status.phase in ("Succeeded", "Failed"):
        return False
    return terminating or service.spec.publish_not_ready_addresses or not pod.metadata.deletion_timestamp


def is_ready(pod: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)


def ports_of(service: Service, pod: Pod) -> tuple[Port, ...]:
    """The service's ports as `pod` has them; a named port that it does not have is left out."""
    found = (_port(port, pod) for port in service.spec.ports)
    return tuple(port for port in found if port is not None)


def _port(port: ServicePort, pod: Pod) -> Port | None:
    protocol = port.protocol or "TCP"
    number = port.target_port or port.port
    if isinstance(number, str):
        named = (p for p in _container_ports(pod) if (p.name, p.protocol or "TCP") == (number, protocol))
        match = next(named, None)
        if match is None:
            return None
        number = match.container_port
    return Port(port.name, protocol, number, port.app_protocol)


def _container_ports(pod: Pod) -> Iterator[ContainerPort]:
    sidecars = [container for container in pod.spec.init_containers if is_sidecar(container)]
    for container in (*pod.spec.containers, *sidecars):
        yield from container.ports


def hostname_of(service: Service, pod: Pod) -> str:
    """The name a pod of a headless service has in DNS."""
    return pod.spec.hostname if pod.spec.subdomain == service.metadata.name else ""


def reference_to(pod: Pod) -> ObjectReference:
    meta = pod.metadata
    return ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid)


def selected_by(services: Iterable[Service], pods: Iterable[Pod | None]) -> Iterator[tuple[str, str]]:
    """The keys of the services in the namespace of `pods` that select any of them."""
    there = [pod for pod in pods if pod is not None]
    for service in services:
        selector = service.spec.selector.items()
        for pod in there:
            same = service.metadata.namespace == pod.metadata.namespace
            if same and selector and selector <= pod.metadata.labels.items():
                yield service.metadata.namespace, service.metadata.name
                break


def matters(old: Pod | None, new: Pod | None) -> bool:
    """Whether a change of a pod may change what stands behind a service."""
    return old is None or new is None or _seen(old) != _seen(new)


def _seen(pod: Pod) -> tuple[object, ...]:
    meta, status = pod.metadata, pod.status
    ending = bool(meta.deletion_timestamp)
    return meta.labels, ending, status.pod_ip, status.phase, is_ready(pod), pod.spec.node_name
