"""EndpointSlices of services: one controller makes them from pods, another mirrors Endpoints written by hand.

A slice holds up to a hundred pods with the same ports and address family, those that are terminating
included. Slices are changed rather than replaced, so that watchers get few events. Endpoints of a service
without a selector are mirrored, because kube-proxy and other consumers read slices only.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from podling.client.client import Client
from podling.client.informer import Groups, Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import LAG, Created, Key, gone_is_done, own_key
from podling.controllers.endpoints import (
    HEADLESS,
    HEADLESS_LABEL,
    MANAGED_BY,
    SERVICE_LABEL,
    Port,
    address_in,
    families_of,
    hostname_of,
    is_behind,
    is_ready,
    of_pods,
    of_slices,
    ports_of,
    reference_to,
    with_trigger,
)
from podling.controllers.selection import Selection
from podling.controllers.trigger_times import ANNOTATION, TriggerTimes
from podling.model.types.discovery import (
    Endpoint,
    EndpointConditions,
    EndpointHints,
    EndpointSlice,
    ForNode,
    ForZone,
    SlicePort,
)
from podling.model.types.meta import ObjectMeta, controller_reference
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.model.types.service import Endpoints, Service

CONTROLLER = "endpointslice-controller.k8s.io"
ZONE_LABEL = "topology.kubernetes.io/zone"
SAME_NODE = "PreferSameNode"
DISTRIBUTIONS = ("PreferClose", "PreferSameZone", SAME_NODE)
MOST = 100
"""Endpoints in a slice."""

MIRRORING_CONTROLLER = "endpointslicemirroring-controller.k8s.io"
SKIP_LABEL = "endpointslice.kubernetes.io/skip-mirror"
LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
NOT_COPIED = frozenset(
    {
        ANNOTATION,
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
        selection: Selection,
        slices: Informer[EndpointSlice],
        nodes: Informer[Node],
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._selection, self._nodes = selection, nodes
        self._pods_of = Groups(selection.pods, lambda pod: pod.spec.node_name or None)
        self._slices = Groups(slices, service_of(CONTROLLER))
        self._triggers = TriggerTimes()
        selection.services.subscribe(own_key(self.queue))
        selection.pods.subscribe(of_pods(self.queue, selection))
        self._created = Created(slices)
        slices.subscribe(of_slices(self.queue, CONTROLLER))
        nodes.subscribe(self._on_node)

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        """Its pods are endpoints while it is there, in its zone."""
        if zone_of(old) == zone_of(new) and (old is None) == (new is None):
            return
        for pod in self._pods_of.of((old or new or Node()).metadata.name):
            for key in self._selection.services_of(pod):
                self.queue.add(key)

    async def reconcile(self, key: Key) -> None:
        if self._created.is_behind(key):
            self.queue.add_after(key, LAG)
            return
        service = self._selection.services.get(*key)
        standing = self._slices.of(key)
        if service is None:
            self._triggers.forget(key)
            for one in tuple(standing):
                await self._delete(one)
        elif service.spec.selector:
            pods = self._selection.pods_of(service)
            trigger = self._triggers.annotated(key, service, pods)
            # Where nobody stands behind a service, there is one empty slice of each family to say so.
            wanted = {
                (of, ports): group
                for of in families_of(service)
                for ports, group in (endpoints(service, pods, self._nodes, of) or {(): []}).items()
            }
            filled, spare = filling(service, wanted, standing)
            for what, group, old in filled:
                await self._put(service, what, group, old, trigger)
            for one in spare:
                await self._delete(one)

    async def _put(
        self,
        service: Service,
        what: Group,
        group: Sequence[Endpoint],
        old: EndpointSlice | None,
        trigger: Mapping[str, str],
    ) -> None:
        """Make `old`, or a new slice, hold `group`."""
        meta, (address_type, ports) = service.metadata, what
        is_reused = old is not None and ports_in(old) != ports
        headless = {HEADLESS_LABEL: ""} if service.spec.cluster_ip == HEADLESS else {}
        new = EndpointSlice(
            metadata=ObjectMeta(
                generate_name=f"{meta.name}-",
                namespace=meta.namespace,
                labels={**meta.labels, SERVICE_LABEL: meta.name, MANAGED_BY: CONTROLLER, **headless},
                annotations=with_trigger(old.metadata.annotations if old and not is_reused else {}, trigger),
                owner_references=[controller_reference(service)],
            ),
            address_type=address_type,
            endpoints=list(group),
            ports=slice_ports(ports),
        )
        key = meta.namespace, meta.name
        if old is None:
            self._created.add(key, await self._client.create(new))
        elif is_reused or (old.endpoints, old.metadata.labels) != (new.endpoints, new.metadata.labels):
            new.metadata.name, new.metadata.generate_name = old.metadata.name, old.metadata.generate_name
            new.metadata.resource_version = old.metadata.resource_version
            # Before the informer has it another update would be refused, and its time be lost.
            self._created.add(key, await self._client.update(new))

    async def _delete(self, one: EndpointSlice) -> None:
        with gone_is_done():
            await self._client.delete(EndpointSlice, one.metadata.name, one.metadata.namespace)


def filling(
    service: Service, wanted: Mapping[Group, Sequence[Endpoint]], standing: Iterable[EndpointSlice]
) -> tuple[list[tuple[Group, Sequence[Endpoint], EndpointSlice | None]], list[EndpointSlice]]:
    """Which slice is to hold which endpoints, a new one where it is None, and those that nothing is left for.
    As in Kubernetes, one whose ports nobody has any more is used for others before it is deleted."""
    alike: dict[Group, list[EndpointSlice]] = defaultdict(list)
    for one in sorted(standing, key=lambda one: one.metadata.name):
        alike[one.address_type, ports_in(one)].append(one)
    filled: list[tuple[Group, Sequence[Endpoint], EndpointSlice | None]] = []
    new: list[tuple[Group, Sequence[Endpoint]]] = []
    for what, endpoints in wanted.items():
        olds = alike.pop(what, [])
        for start in range(0, len(endpoints) or 1, MOST):
            group = endpoints[start : start + MOST]
            if olds:
                filled.append((what, group, olds.pop(0)))
            else:
                new.append((what, group))
        alike[what] = olds
    spare = [one for ones in alike.values() for one in ones]
    for what, group in new:
        if (old := first_of(spare, what[0], service.metadata.uid)) is not None:
            spare.remove(old)
        filled.append((what, group, old))
    return filled, spare


def first_of(spare: Iterable[EndpointSlice], address_type: str, uid: str = "") -> EndpointSlice | None:
    """The first of these that can hold addresses of that type, which does not change; with `uid`, of those of
    that owner."""
    for one in spare:
        is_owned = not uid or any(owner.uid == uid for owner in one.metadata.owner_references)
        if one.address_type == address_type and is_owned:
            return one
    return None


def service_of(controller: str) -> Callable[[EndpointSlice], Key | None]:
    """Which service a slice is for, of those that `controller` manages; None of any other."""

    def of(one: EndpointSlice) -> Key | None:
        labels = one.metadata.labels
        if labels.get(MANAGED_BY) != controller or SERVICE_LABEL not in labels:
            return None
        return one.metadata.namespace, labels[SERVICE_LABEL]

    return of


def ports_in(one: EndpointSlice) -> Ports:
    """The ports of a slice, in a form that can be compared."""
    return tuple(
        Port(port.name or "", port.protocol or "TCP", port.port or 0, port.app_protocol) for port in one.ports
    )


def endpoints(service: Service, pods: Iterable[Pod], nodes: Informer[Node], of: str) -> Wanted:
    """The wanted endpoints of a service, those `of` a family, by the slices' ports, in order of address. A
    pod whose node is not there is none, unless unready ones are published."""
    found: Wanted = defaultdict(list)
    for pod in pods:
        same = pod.metadata.namespace == service.metadata.namespace
        if not same or not is_behind(service, pod, terminating=True):
            continue
        if not (address := address_in(pod, of)):
            continue
        node = nodes.get("", pod.spec.node_name)
        if node is None and not service.spec.publish_not_ready_addresses:
            continue
        serving, terminating = is_ready(pod), bool(pod.metadata.deletion_timestamp)
        ready = service.spec.publish_not_ready_addresses or (serving and not terminating)
        zone = zone_of(node)
        endpoint = Endpoint(
            addresses=[address],
            conditions=EndpointConditions(ready=ready, serving=serving, terminating=terminating),
            hostname=hostname_of(service, pod) or None,
            target_ref=reference_to(pod),
            node_name=pod.spec.node_name or None,
            zone=zone or None,
            hints=hints(service.spec.traffic_distribution, pod.spec.node_name, zone) if ready else None,
        )
        found[ports_of(service, pod)].append(endpoint)
    return {ports: sorted(group, key=lambda one: one.addresses) for ports, group in found.items()}


def zone_of(node: Node | None) -> str:
    return node.metadata.labels.get(ZONE_LABEL, "") if node else ""


def hints(distribution: str | None, node: str, zone: str) -> EndpointHints | None:
    """Whose clients a ready endpoint is for."""
    for_zones = [ForZone(zone)] if distribution in DISTRIBUTIONS and zone else []
    for_nodes = [ForNode(node)] if distribution == SAME_NODE and node else []
    return EndpointHints(for_zones, for_nodes) if for_zones or for_nodes else None


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
        self._services, self._endpoints = services, endpoints
        self._slices = Groups(slices, service_of(MIRRORING_CONTROLLER))
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
        standing = {(one.address_type, ports_in(one)): one for one in self._slices.of(key)}
        spare = [one for group, one in standing.items() if group not in wanted]
        for group, new in wanted.items():
            old = standing.get(group)
            if old is None and (old := first_of(spare, group[0])) is not None:
                spare.remove(old)
            await self._put(key, new, old)
        for one in spare:
            with gone_is_done():
                await self._client.delete(EndpointSlice, one.metadata.name, key[0])

    async def _put(self, key: Key, new: EndpointSlice, old: EndpointSlice | None) -> None:
        if old is None:
            self._created.add(key, await self._client.create(new))
            return
        kept, made = old.metadata, new.metadata
        if (old.endpoints, ports_in(old), kept.labels, kept.annotations) != (
            new.endpoints,
            ports_in(new),
            made.labels,
            made.annotations,
        ):
            made.name, made.generate_name = kept.name, ""
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
