"""Endpoints that somebody writes by hand, for a service without a selector, are mirrored into EndpointSlices.

Who looks for backends looks at slices only. A slice holds the addresses of one family behind the same ports.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import LAG, Created, Key, gone_is_done
from podling.controllers.endpoint_slices import belongs, ports_in, slice_ports
from podling.controllers.service_keys import MANAGED_BY, SERVICE_LABEL, of_slices, of_the_same_name
from podling.controllers.service_pods import Port
from podling.model.endpoint_slice import Endpoint, EndpointConditions, EndpointSlice
from podling.model.meta import ObjectMeta, controller_reference
from podling.model.service import EndpointAddress, Endpoints, EndpointSubset, Service

CONTROLLER = "endpointslicemirroring-controller.k8s.io"
SKIP_LABEL = "endpointslice.kubernetes.io/skip-mirror"
LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
NOT_COPIED = frozenset(
    {
        "endpoints.kubernetes.io/last-change-trigger-time",
        "endpoints.kubernetes.io/over-capacity",
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)
MOST = 1000
"""Addresses of a subset that are mirrored."""

Ports = tuple[Port, ...]
Group = tuple[str, Ports]
"""What is the same in a slice: the address type and the ports."""


class EndpointMirror:
    name = "endpointslicemirroring"

    def __init__(
        self,
        client: Client,
        services: Informer[Service],
        endpoints: Informer[Endpoints],
        slices: Informer[EndpointSlice],
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._services, self._endpoints, self._slices = services, endpoints, slices
        services.subscribe(of_the_same_name(self.queue))
        endpoints.subscribe(of_the_same_name(self.queue))
        self._created = Created(slices)
        slices.subscribe(of_slices(self.queue, CONTROLLER))

    async def reconcile(self, key: Key) -> None:
        if self._created.is_behind(key):
            self.queue.add_after(key, LAG)
            return
        service, endpoints = self._services.get(*key), self._endpoints.get(*key)
        wanted: Mapping[Group, EndpointSlice] = {}
        if service is not None and endpoints is not None and is_mirrored(service, endpoints):
            wanted = mirrored(endpoints)
        ours = [one for one in self._slices.items() if belongs(one, key, CONTROLLER)]
        standing = {(one.address_type, ports_in(one)): one for one in ours}
        for group, new in wanted.items():
            await self._put(key, new, standing.get(group))
        for group in standing.keys() - wanted.keys():
            with gone_is_done():
                await self._client.delete(EndpointSlice, standing[group].metadata.name, key[0])

    async def _put(self, key: Key, new: EndpointSlice, old: EndpointSlice | None) -> None:
        if old is None:
            self._created.add(key, await self._client.create(new))
            return
        kept, made = old.metadata, new.metadata
        if (old.endpoints, kept.labels, kept.annotations) != (new.endpoints, made.labels, made.annotations):
            made.name, made.generate_name = kept.name, kept.generate_name
            made.resource_version = kept.resource_version
            await self._client.update(new)


def is_mirrored(service: Service, endpoints: Endpoints) -> bool:
    """Not where a controller makes slices itself, nor where they are not meant for traffic."""
    meta = endpoints.metadata
    skipped = meta.labels.get(SKIP_LABEL) == "true" or LEADER_ANNOTATION in meta.annotations
    return not service.spec.selector and not skipped


def mirrored(endpoints: Endpoints) -> dict[Group, EndpointSlice]:
    slices: dict[Group, EndpointSlice] = {}
    for subset in endpoints.subsets:
        for family, endpoint in _endpoints(subset):
            group = family, _ports(subset)
            if group not in slices:
                slices[group] = _slice(endpoints, *group)
            slices[group].endpoints.append(endpoint)
    return slices


def _endpoints(subset: EndpointSubset) -> Iterator[tuple[str, Endpoint]]:
    ready = [(address, True) for address in subset.addresses]
    unready = [(address, False) for address in subset.not_ready_addresses]
    for address, is_ready in (ready + unready)[:MOST]:
        family = "IPv6" if ipaddress.ip_address(address.ip).version == 6 else "IPv4"
        yield family, _endpoint(address, is_ready)


def _endpoint(address: EndpointAddress, ready: bool) -> Endpoint:
    return Endpoint(
        addresses=[address.ip],
        conditions=EndpointConditions(ready=ready),
        hostname=address.hostname or None,
        target_ref=address.target_ref,
        node_name=address.node_name,
    )


def _ports(subset: EndpointSubset) -> Ports:
    return tuple(
        Port(port.name, port.protocol or "TCP", port.port, port.app_protocol) for port in subset.ports
    )


def _slice(endpoints: Endpoints, family: str, ports: Ports) -> EndpointSlice:
    meta = endpoints.metadata
    return EndpointSlice(
        metadata=ObjectMeta(
            generate_name=f"{meta.name}-",
            namespace=meta.namespace,
            labels={**meta.labels, SERVICE_LABEL: meta.name, MANAGED_BY: CONTROLLER},
            annotations={key: value for key, value in meta.annotations.items() if key not in NOT_COPIED},
            owner_references=[controller_reference(endpoints)],
        ),
        address_type=family,
        ports=slice_ports(ports),
    )
