"""Endpoints: the addresses of the pods behind each service, those that are ready and those that are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done
from podling.controllers.service_keys import of_pods, of_the_same_name
from podling.controllers.service_pods import (
    HEADLESS_LABEL,
    Port,
    hostname_of,
    is_behind,
    is_ready,
    ports_of,
    reference_to,
)
from podling.model.meta import ObjectMeta
from podling.model.pod import Pod
from podling.model.service import EndpointAddress, EndpointPort, Endpoints, EndpointSubset, Service

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
CONTROLLER = "endpoint-controller"
HEADLESS = "None"


class EndpointsController:
    name = "endpoint"

    def __init__(
        self,
        client: Client,
        services: Informer[Service],
        pods: Informer[Pod],
        endpoints: Informer[Endpoints],
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._services, self._pods, self._endpoints = services, pods, endpoints
        services.subscribe(of_the_same_name(self.queue))
        pods.subscribe(of_pods(self.queue, services))
        endpoints.subscribe(of_the_same_name(self.queue))

    async def reconcile(self, key: Key) -> None:
        service, standing = self._services.get(*key), self._endpoints.get(*key)
        if service is None:
            if standing is not None and MANAGED_BY in standing.metadata.labels:
                await self._delete(key)
            return
        if not service.spec.selector:
            return
        wanted = subsets(service, self._pods.items())
        labels = _labels(service)
        if standing is None:
            meta = ObjectMeta(name=key[1], namespace=key[0], labels=labels)
            await self._client.create(Endpoints(metadata=meta, subsets=wanted))
        elif (standing.subsets, standing.metadata.labels) != (wanted, labels):
            meta = ObjectMeta(
                name=key[1],
                namespace=key[0],
                labels=labels,
                annotations=standing.metadata.annotations,
                resource_version=standing.metadata.resource_version,
            )
            await self._client.update(Endpoints(metadata=meta, subsets=wanted))

    async def _delete(self, key: Key) -> None:
        with gone_is_done():
            await self._client.delete(Endpoints, key[1], key[0])


def _labels(service: Service) -> dict[str, str]:
    headless = {HEADLESS_LABEL: ""} if service.spec.cluster_ip == HEADLESS else {}
    return {**service.metadata.labels, MANAGED_BY: CONTROLLER, **headless}


def subsets(service: Service, pods: Iterable[Pod]) -> list[EndpointSubset]:
    """Pods with the same ports share a subset. In an order that depends on nothing but what is in them."""
    by_ports: dict[tuple[Port, ...], EndpointSubset] = defaultdict(EndpointSubset)
    for pod in pods:
        if pod.metadata.namespace != service.metadata.namespace:
            continue
        if not is_behind(service, pod, terminating=False):
            continue
        ports = ports_of(service, pod)
        if service.spec.ports and not ports:
            continue
        _add(by_ports[ports], service, pod)
    for ports, subset in by_ports.items():
        subset.addresses = sorted(subset.addresses, key=_order)
        subset.not_ready_addresses = sorted(subset.not_ready_addresses, key=_order)
        subset.ports = [
            EndpointPort(name=p.name, port=p.number, protocol=p.protocol, app_protocol=p.app_protocol)
            for p in ports
        ]
    return [by_ports[ports] for ports in sorted(by_ports, key=str)]


def _add(subset: EndpointSubset, service: Service, pod: Pod) -> None:
    address = EndpointAddress(
        ip=pod.status.pod_ip,
        hostname=hostname_of(service, pod),
        node_name=pod.spec.node_name or None,
        target_ref=reference_to(pod),
    )
    ready = is_ready(pod) or service.spec.publish_not_ready_addresses
    if ready:
        subset.addresses = [*subset.addresses, address]
    else:
        subset.not_ready_addresses = [*subset.not_ready_addresses, address]


def _order(address: EndpointAddress) -> tuple[str, str]:
    return address.ip, address.target_ref.uid if address.target_ref else ""
