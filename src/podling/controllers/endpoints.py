"""Endpoints of services, and what this controller shares with that of EndpointSlices.

The pure functions say which pods are behind a service and under which ports. Named ports are looked up in app
containers and sidecars; other init containers have ended when a pod serves (R-INIT-8). `of_pods` and
`of_slices` are informer handlers that add the keys of the services that a change concerns to a queue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Handler, Key, gone_is_done, own_key
from podling.controllers.selection import Selection, selects
from podling.controllers.trigger_times import ANNOTATION, TriggerTimes
from podling.model.rules.addresses import family
from podling.model.rules.resources import is_sidecar
from podling.model.rules.status import is_condition_true, is_terminal
from podling.model.types.discovery import EndpointSlice
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod
from podling.model.types.references import ObjectReference
from podling.model.types.service import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Service,
)

HEADLESS = "None"
"""`clusterIP` of a headless service."""
HEADLESS_LABEL = "service.kubernetes.io/headless"
SERVICE_LABEL = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
ENDPOINTS_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
CONTROLLER = "endpoint-controller"


class Port(NamedTuple):
    name: str
    protocol: str
    number: int
    app_protocol: str | None = None


def is_behind(service: Service, pod: Pod, *, terminating: bool) -> bool:
    """Whether `pod` is an endpoint of `service`, ready or not. Terminating pods are only if asked for."""
    if not selects(service, pod):
        return False
    if not pod.status.pod_ip or is_terminal(pod):
        return False
    return terminating or service.spec.publish_not_ready_addresses or not pod.metadata.deletion_timestamp


def is_ready(pod: Pod) -> bool:
    return is_condition_true(pod.status.conditions, "Ready")


def ports_of(service: Service, pod: Pod) -> tuple[Port, ...]:
    """The service's target ports in `pod`; a named port that the pod does not have is left out."""
    # Other init containers have ended when a pod serves.
    sidecars = [container for container in pod.spec.init_containers if is_sidecar(container)]
    numbers: dict[tuple[int | str, str], int] = {}
    for container in (*pod.spec.containers, *sidecars):
        for named in container.ports:
            numbers.setdefault((named.name, named.protocol or "TCP"), named.container_port)
    found = []
    for port in service.spec.ports:
        protocol = port.protocol or "TCP"
        target: int | str | None = port.target_port or port.port
        if isinstance(target, str):
            target = numbers.get((target, protocol))
        if target is not None:
            found.append(Port(port.name, protocol, target, port.app_protocol))
    return tuple(found)


def hostname_of(service: Service, pod: Pod) -> str:
    """The pod's DNS name below a headless service, "" for none."""
    return pod.spec.hostname if pod.spec.subdomain == service.metadata.name else ""


def reference_to(pod: Pod) -> ObjectReference:
    meta = pod.metadata
    return ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid)


def matters(old: Pod | None, new: Pod | None) -> bool:
    """Whether a change of a pod may change the endpoints of a service."""
    return old is None or new is None or _seen(old) != _seen(new)


def _seen(pod: Pod) -> tuple[object, ...]:
    meta, status = pod.metadata, pod.status
    ending = bool(meta.deletion_timestamp)
    return meta.labels, ending, status.pod_ip, status.phase, is_ready(pod), pod.spec.node_name


def of_slices(queue: WorkQueue[Key], controller: str) -> Handler[EndpointSlice]:
    """Handler for the slices that `controller` manages."""

    def changed(old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        one = new or old
        if one is not None and one.metadata.labels.get(MANAGED_BY) == controller:
            queue.add((one.metadata.namespace, one.metadata.labels.get(SERVICE_LABEL, "")))

    return changed


def of_pods(queue: WorkQueue[Key], selection: Selection) -> Handler[Pod]:
    """Handler for pods: adds every service that selects the pod."""

    def changed(old: Pod | None, new: Pod | None) -> None:
        if matters(old, new):
            for pod in (old, new):
                for key in selection.services_of(pod) if pod is not None else ():
                    queue.add(key)

    return changed


class EndpointsController:
    name = "endpoint"

    def __init__(
        self,
        client: Client,
        selection: Selection,
        endpoints: Informer[Endpoints],
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._selection, self._endpoints = selection, endpoints
        self._triggers = TriggerTimes()
        selection.services.subscribe(own_key(self.queue))
        selection.pods.subscribe(of_pods(self.queue, selection))
        endpoints.subscribe(own_key(self.queue))

    async def reconcile(self, key: Key) -> None:
        service, standing = self._selection.services.get(*key), self._endpoints.get(*key)
        if service is None:
            self._triggers.forget(key)
            if standing is not None and ENDPOINTS_MANAGED_BY in standing.metadata.labels:
                with gone_is_done():
                    await self._client.delete(Endpoints, key[1], key[0])
            return
        if not service.spec.selector:
            return
        pods = self._selection.pods_of(service)
        wanted, trigger = subsets(service, pods), self._triggers.annotated(key, service, pods)
        headless = {HEADLESS_LABEL: ""} if service.spec.cluster_ip == HEADLESS else {}
        labels = {**service.metadata.labels, ENDPOINTS_MANAGED_BY: CONTROLLER, **headless}
        if standing is None:
            meta = ObjectMeta(name=key[1], namespace=key[0], labels=labels, annotations=trigger)
            await self._client.create(Endpoints(metadata=meta, subsets=wanted))
        elif (standing.subsets, standing.metadata.labels) != (wanted, labels):
            meta = ObjectMeta(
                name=key[1],
                namespace=key[0],
                labels=labels,
                annotations=with_trigger(standing.metadata.annotations, trigger),
                resource_version=standing.metadata.resource_version,
            )
            await self._client.update(Endpoints(metadata=meta, subsets=wanted))


def with_trigger(standing: Mapping[str, str], trigger: Mapping[str, str]) -> dict[str, str]:
    """The annotations of an object that is written anew."""
    return {**{name: value for name, value in standing.items() if name != ANNOTATION}, **trigger}


def families_of(service: Service) -> list[str]:
    """Those of its addresses, the first one first."""
    return service.spec.ip_families or ["IPv4"]


def address_in(pod: Pod, of: str) -> str:
    """The pod's address of a family; empty if it has none."""
    every = (pod.status.pod_ip, *(one.ip for one in pod.status.pod_ips))
    return next((address for address in every if address and family(address) == of), "")


def subsets(service: Service, pods: Iterable[Pod]) -> list[EndpointSubset]:
    """The subsets of the Endpoints, which are of the service's first family: pods with the same ports share
    one. The order depends only on their content."""
    by_ports: dict[tuple[Port, ...], EndpointSubset] = defaultdict(EndpointSubset)
    for pod in pods:
        if pod.metadata.namespace != service.metadata.namespace:
            continue
        if not is_behind(service, pod, terminating=False):
            continue
        ports = ports_of(service, pod)
        ip = address_in(pod, families_of(service)[0])
        if not ip or (service.spec.ports and not ports):
            continue
        subset = by_ports[ports]
        address = EndpointAddress(
            ip=ip,
            hostname=hostname_of(service, pod),
            node_name=pod.spec.node_name or None,
            target_ref=reference_to(pod),
        )
        if is_ready(pod) or service.spec.publish_not_ready_addresses:
            subset.addresses = [*subset.addresses, address]
        else:
            subset.not_ready_addresses = [*subset.not_ready_addresses, address]
    for ports, subset in by_ports.items():
        subset.addresses = sorted(subset.addresses, key=_order)
        subset.not_ready_addresses = sorted(subset.not_ready_addresses, key=_order)
        subset.ports = [
            EndpointPort(name=p.name, port=p.number, protocol=p.protocol, app_protocol=p.app_protocol)
            for p in ports
        ]
    return [by_ports[ports] for ports in sorted(by_ports, key=str)]


def _order(address: EndpointAddress) -> tuple[str, str]:
    return address.ip, address.target_ref.uid if address.target_ref else ""
