"""EndpointSlices of services: one controller makes them from pods, another mirrors Endpoints written by hand.

A slice holds up to a hundred pods with the same ports and address family, those that are terminating
included. Slices are changed rather than replaced, so that watchers get few events. Endpoints of a service
without a selector are mirrored, because kube-proxy and other consumers read slices only.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import LAG, Created, Key, gone_is_done, own_key
from podling.controllers.endpoints import (
    HEADLESS,
    HEADLESS_LABEL,
    MANAGED_BY,
    SERVICE_LABEL,
    Port,
    hostname_of,
    is_behind,
    is_ready,
    of_pods,
    of_slices,
    ports_of,
    reference_to,
)
from podling.model.types.discovery import Endpoint, EndpointConditions, EndpointSlice, SlicePort
from podling.model.types.meta import ObjectMeta, controller_reference
from podling.model.types.pod import Pod
from podling.model.types.service import Endpoints, Service

CONTROLLER = "endpointslice-controller.k8s.io"
MOST = 100
"""Endpoints in a slice."""

MIRRORING_CONTROLLER = "endpointslicemirroring-controller.k8s.io"
SKIP_LABEL = "endpointslice.kubernetes.io/skip-mirror"
LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
NOT_COPIED = frozenset(
    {
        "endpoints.kubernetes.io/last-change-trigger-time",
        "endpoints.kubernetes.io/over-capacity",
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)
MOST_MIRRORED = 1000
"""Addresses mirrored of each subset."""

Ports = tuple[Port, ...]
Wanted = dict[Ports, list[Endpoint]]
Group = tuple[str, Ports]
"""What is equal in all endpoints of a slice: address type and ports."""


class EndpointSlices:
    name = "endpointslice"

    def __init__(
        self,
        client: Client,
        services: Informer[Service],
        pods: Informer[Pod],
        slices: Informer[EndpointSlice],
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._services, self._pods, self._slices = services, pods, slices
        services.subscribe(own_key(self.queue))
        pods.subscribe(of_pods(self.queue, services))
        self._created = Created(slices)
        slices.subscribe(of_slices(self.queue, CONTROLLER))

    async def reconcile(self, key: Key) -> None:
        if self._created.is_behind(key):
            self.queue.add_after(key, LAG)
            return
        service = self._services.get(*key)
        standing = [one for one in self._slices.items() if belongs(one, key, CONTROLLER)]
        if service is None:
            for one in standing:
                await self._delete(one)
        elif service.spec.selector:
            # A service nobody stands behind has one empty slice, so that it can be seen to have none.
            wanted = endpoints(service, self._pods.items()) or {(): []}
            by_ports: dict[Ports, list[EndpointSlice]] = defaultdict(list)
            for one in sorted(standing, key=lambda one: one.metadata.name):
                by_ports[ports_in(one)].append(one)
            for ports in {**wanted, **by_ports}:
                all_of_them = wanted.get(ports, [])
                groups = [all_of_them[start : start + MOST] for start in range(0, len(all_of_them), MOST)]
                if ports in wanted and not groups:
                    groups = [[]]
                for group, old in zip_longest(groups, by_ports.get(ports, [])):
                    await self._put(service, ports, group, old)

    async def _put(
        self,
        service: Service,
        ports: Ports,
        group: Sequence[Endpoint] | None,
        old: EndpointSlice | None,
    ) -> None:
        """Make one slice hold `group`; without a group, delete it."""
        if group is None:
            if old is not None:
                await self._delete(old)
            return
        meta = service.metadata
        headless = {HEADLESS_LABEL: ""} if service.spec.cluster_ip == HEADLESS else {}
        new = EndpointSlice(
            metadata=ObjectMeta(
                generate_name=f"{meta.name}-",
                namespace=meta.namespace,
                labels={**meta.labels, SERVICE_LABEL: meta.name, MANAGED_BY: CONTROLLER, **headless},
                owner_references=[controller_reference(service)],
            ),
            address_type="IPv4",
            endpoints=list(group),
            ports=slice_ports(ports),
        )
        if old is None:
            key = service.metadata.namespace, service.metadata.name
            self._created.add(key, await self._client.create(new))
        elif (old.endpoints, old.metadata.labels) != (new.endpoints, new.metadata.labels):
            new.metadata.name, new.metadata.generate_name = old.metadata.name, old.metadata.generate_name
            new.metadata.resource_version = old.metadata.resource_version
            await self._client.update(new)

    async def _delete(self, one: EndpointSlice) -> None:
        with gone_is_done():
            await self._client.delete(EndpointSlice, one.metadata.name, one.metadata.namespace)


def belongs(one: EndpointSlice, key: Key, controller: str) -> bool:
    """Whether a slice is one that `controller` manages for the service `key`."""
    meta, labels = one.metadata, one.metadata.labels
    return (meta.namespace, labels.get(SERVICE_LABEL)) == key and labels.get(MANAGED_BY) == controller


def ports_in(one: EndpointSlice) -> Ports:
    """The ports of a slice, in a form that can be compared."""
    return tuple(
        Port(port.name or "", port.protocol or "TCP", port.port or 0, port.app_protocol) for port in one.ports
    )


def endpoints(service: Service, pods: Iterable[Pod]) -> Wanted:
    """The wanted endpoints of a service by the slices' ports, in order of address."""
    found: Wanted = defaultdict(list)
    for pod in pods:
        same = pod.metadata.namespace == service.metadata.namespace
        if not same or not is_behind(service, pod, terminating=True):
            continue
        serving, terminating = is_ready(pod), bool(pod.metadata.deletion_timestamp)
        ready = service.spec.publish_not_ready_addresses or (serving and not terminating)
        endpoint = Endpoint(
            addresses=[pod.status.pod_ip],
            conditions=EndpointConditions(ready=ready, serving=serving, terminating=terminating),
            hostname=hostname_of(service, pod) or None,
            target_ref=reference_to(pod),
            node_name=pod.spec.node_name or None,
        )
        found[ports_of(service, pod)].append(endpoint)
    return {ports: sorted(group, key=lambda one: one.addresses) for ports, group in found.items()}


def slice_ports(ports: Iterable[Port]) -> list[SlicePort]:
    return [
        SlicePort(name=port.name, protocol=port.protocol, port=port.number, app_protocol=port.app_protocol)
        for port in ports
    ]


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
        services.subscribe(own_key(self.queue))
        endpoints.subscribe(own_key(self.queue))
        self._created = Created(slices)
        slices.subscribe(of_slices(self.queue, MIRRORING_CONTROLLER))

    async def reconcile(self, key: Key) -> None:
        if self._created.is_behind(key):
            self.queue.add_after(key, LAG)
            return
        service, endpoints = self._services.get(*key), self._endpoints.get(*key)
        wanted: Mapping[Group, EndpointSlice] = {}
        if service is not None and endpoints is not None and is_mirrored(service, endpoints):
            wanted = mirrored(endpoints)
        ours = [one for one in self._slices.items() if belongs(one, key, MIRRORING_CONTROLLER)]
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
    """Whether Endpoints are mirrored: not when a controller makes the service's slices, nor when they are a
    leader election lock or carry the skip label."""
    meta = endpoints.metadata
    skipped = meta.labels.get(SKIP_LABEL) == "true" or LEADER_ANNOTATION in meta.annotations
    return not service.spec.selector and not skipped


def mirrored(endpoints: Endpoints) -> dict[Group, EndpointSlice]:
    """The slices that mirror `endpoints`, in the order of their first endpoint."""
    meta = endpoints.metadata
    slices: dict[Group, EndpointSlice] = {}
    for subset in endpoints.subsets:
        ports = tuple(Port(p.name, p.protocol or "TCP", p.port, p.app_protocol) for p in subset.ports)
        ready = [(address, True) for address in subset.addresses]
        unready = [(address, False) for address in subset.not_ready_addresses]
        for address, serves in (ready + unready)[:MOST_MIRRORED]:
            family = "IPv6" if ipaddress.ip_address(address.ip).version == 6 else "IPv4"
            if (family, ports) not in slices:
                slices[family, ports] = EndpointSlice(
                    metadata=ObjectMeta(
                        generate_name=f"{meta.name}-",
                        namespace=meta.namespace,
                        labels={**meta.labels, SERVICE_LABEL: meta.name, MANAGED_BY: MIRRORING_CONTROLLER},
                        annotations={k: v for k, v in meta.annotations.items() if k not in NOT_COPIED},
                        owner_references=[controller_reference(endpoints)],
                    ),
                    address_type=family,
                    ports=slice_ports(ports),
                )
            endpoint = Endpoint(
                addresses=[address.ip],
                conditions=EndpointConditions(ready=serves),
                hostname=address.hostname or None,
                target_ref=address.target_ref,
                node_name=address.node_name,
            )
            slices[family, ports].endpoints.append(endpoint)
    return slices
