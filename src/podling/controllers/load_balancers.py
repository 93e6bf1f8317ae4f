"""Services of type LoadBalancer get the addresses of nodes, whose proxies lead to their pods: no balancer, no
pod and no image is needed (docs/decisions/074).

It stands where a cloud's service controller stands, with its finalizer, events and choice of nodes, and
leaves services of another `loadBalancerClass` alone. An address and port is one service's: the first's that
has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done
from podling.model.codec import json
from podling.model.rules.addresses import family
from podling.model.rules.placement import GOING
from podling.model.rules.status import is_condition_true
from podling.model.types.discovery import EndpointSlice
from podling.model.types.node import Node
from podling.model.types.service import LoadBalancerIngress, Service, ServiceSpec

RECORDER = "service-controller"
LOAD_BALANCER = "LoadBalancer"
FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"
SERVICE_LABEL = "kubernetes.io/service-name"
STRATEGIC = "application/strategic-merge-patch+json"
AGAIN = 30.0
"""Seconds until a port that a process of a machine had is asked for again."""

Taken = Callable[[str, str, int], bool]
"""Whether a process of this machine has a port: called with protocol (`TCP`), address and port. No other
machine can be asked."""


class Place(NamedTuple):
    address: str
    protocol: str
    port: int


class LoadBalancers:
    name = "service-lb-controller"

    def __init__(
        self,
        client: Client,
        services: Informer[Service],
        slices: Informer[EndpointSlice],
        nodes: Informer[Node],
        events: EventRecorder,
        taken: Taken,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._events, self._taken = client, events, taken
        self._services, self._nodes = services, nodes
        self._owners: dict[Place, Key] = {}
        self._places: dict[Key, set[Place]] = {}
        self._wait: set[Key] = set()
        """Services that want a place that another has, or a node where there is none."""
        self._troubles: dict[Key, str] = {}
        """What was said of those that cannot have what they want."""
        self._endpoints: dict[Key, dict[str, EndpointSlice]] = {}
        services.subscribe(self._service_changed)
        slices.subscribe(self._slice_changed)
        nodes.subscribe(self._node_changed)

    async def reconcile(self, key: Key) -> None:
        service = self._services.get(*key)
        if service is None or not wants(service) or service.metadata.deletion_timestamp:
            self._give_back(key)
            if service is not None and FINALIZER in service.metadata.finalizers:
                self._events.normal(service, "DeletingLoadBalancer", "Deleting load balancer")
                await self._write(service, [], "$deleteFromPrimitiveList/finalizers")
                self._events.normal(service, "DeletedLoadBalancer", "Deleted load balancer")
            return
        chosen = addresses(service, self._nodes.items(), self._endpoints.get(key, {}).values())
        if not chosen:
            self._say(
                key, service, "UnAvailableLoadBalancer", "There are no available nodes for LoadBalancer"
            )
            return
        free, trouble = self._claim(key, service, chosen)
        if not free and trouble:
            why = f"Error syncing load balancer: failed to ensure load balancer: {trouble}"
            self._say(key, service, "SyncLoadBalancerFailed", why)
        else:
            self._troubles.pop(key, None)
        ingress = [LoadBalancerIngress(ip=address, ip_mode="VIP") for address in free]
        if FINALIZER in service.metadata.finalizers and had(service) == ingress:
            return
        self._events.normal(service, "EnsuringLoadBalancer", "Ensuring load balancer")
        await self._write(service, ingress, "finalizers")
        if ingress:
            self._events.normal(service, "EnsuredLoadBalancer", "Ensured load balancer")

    def _claim(self, key: Key, service: Service, chosen: Iterable[str]) -> tuple[list[str], str]:
        """Which of these addresses the service can have, and why not the last of the others."""
        before, free, trouble = self._places.get(key, set()), list[str](), ""
        mine = set[Place]()
        for address in chosen:
            places = {Place(address, port.protocol, port.port) for port in service.spec.ports}
            fault = next(filter(None, (self._fault(key, place, before) for place in sorted(places))), "")
            if fault:
                trouble = fault
            else:
                free.append(address)
                mine |= places
        for place in before - mine:
            del self._owners[place]
        self._owners.update(dict.fromkeys(mine, key))
        self._places[key] = mine
        if before - mine:
            self._wake()
        if trouble:
            self._wait.add(key)
        else:
            self._wait.discard(key)
        return free, trouble

    def _fault(self, key: Key, place: Place, before: set[Place]) -> str:
        owner = self._owners.get(place, key)
        if owner != key:
            return (
                f"{place.protocol} port {place.port} of {place.address} is that of service {'/'.join(owner)}"
            )
        if place not in before and self._taken(place.protocol, place.address, place.port):
            self.queue.add_after(key, AGAIN)
            return f"{place.protocol} port {place.port} of {place.address} is in use by a process there"
        return ""

    async def _write(self, service: Service, ingress: list[LoadBalancerIngress], finalizers: str) -> None:
        """Set the status, and the finalizer by this part of a strategic patch."""
        meta = service.metadata
        patch = {
            "metadata": {"uid": meta.uid, finalizers: [FINALIZER]},
            "status": {"loadBalancer": {"ingress": [json.to_data(one) for one in ingress] or None}},
        }
        with gone_is_done():
            await self._client.patch(
                Service, meta.name, meta.namespace, patch, subresource="status", patch_type=STRATEGIC
            )

    def _say(self, key: Key, service: Service, reason: str, trouble: str) -> None:
        """Once for as long as it holds."""
        self._wait.add(key)
        if self._troubles.get(key) != trouble:
            self._troubles[key] = trouble
            self._events.warning(service, reason, trouble)

    def _give_back(self, key: Key) -> None:
        self._wait.discard(key)
        self._troubles.pop(key, None)
        for place in self._places.pop(key, ()):
            del self._owners[place]
            self._wake()

    def _wake(self) -> None:
        for key in self._wait:
            self.queue.add(key)

    def _service_changed(self, old: Service | None, new: Service | None) -> None:
        one = new or old
        if one is None or not any(
            service and (wants(service) or FINALIZER in service.metadata.finalizers) for service in (old, new)
        ):
            return
        key = one.metadata.namespace, one.metadata.name
        if old is None and new is not None and wants(new):
            # What it has from before a restart stays its own.
            for place in (Place(i.ip, p.protocol, p.port) for i in had(new) for p in new.spec.ports):
                if self._owners.setdefault(place, key) == key:
                    self._places.setdefault(key, set()).add(place)
        if old and new and (said := change(old, new)):
            self._events.normal(new, *said)
        self.queue.add(key)

    def _slice_changed(self, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        for one, is_there in ((old, False), (new, True)):
            if one is None or not (service := one.metadata.labels.get(SERVICE_LABEL)):
                continue
            key = one.metadata.namespace, service
            of_service = self._endpoints.setdefault(key, {})
            if is_there:
                of_service[one.metadata.name] = one
            else:
                of_service.pop(one.metadata.name, None)
                if not of_service:
                    del self._endpoints[key]
            its = self._services.get(*key)
            if its is not None and wants(its) and its.spec.external_traffic_policy == "Local":
                self.queue.add(key)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if (old and node_addresses(old)) == (new and node_addresses(new)):
            return
        for service in self._services.items():
            if wants(service):
                self.queue.add((service.metadata.namespace, service.metadata.name))


def wants(service: Service) -> bool:
    """Whether this controller is to give a service its addresses."""
    spec = service.spec
    return spec.type == LOAD_BALANCER and spec.load_balancer_class is None


def had(service: Service) -> list[LoadBalancerIngress]:
    return service.status.load_balancer.ingress


def addresses(service: Service, nodes: Iterable[Node], slices: Iterable[EndpointSlice]) -> list[str]:
    """Where a service can be reached, by family and node: at nodes that have its endpoints, if it is to lead
    to no other's, unless none has any."""
    of_node = {node.metadata.name: found for node in nodes if (found := node_addresses(node))}
    if service.spec.external_traffic_policy == "Local":
        near = {
            one.node_name for part in slices for one in part.endpoints if one.conditions.ready is not False
        }
        of_node = {name: found for name, found in of_node.items() if name in near} or of_node
    wanted = service.spec.load_balancer_ip
    return [
        address
        for which in service.spec.ip_families
        for name in sorted(of_node)
        for address in of_node[name]
        if family(address) == which and wanted in ("", address)
    ]


def node_addresses(node: Node) -> tuple[str, ...]:
    """At which a node may be reached from outside, one of a family; none of a node that is not to be."""
    is_out = EXCLUDED in node.metadata.labels or any(taint.key == GOING for taint in node.spec.taints)
    if is_out or not is_condition_true(node.status.conditions, "Ready"):
        return ()
    found: dict[str, str] = {}
    for kind in ("ExternalIP", "InternalIP"):
        for one in node.status.addresses:
            if one.type == kind:
                found.setdefault(family(one.address), one.address)
    return tuple(found.values())


def change(old: Service, new: Service) -> tuple[str, str] | None:
    """Reason and message of the event that tells of a change of the specification."""
    before, after = old.spec, new.spec
    if wants(old) != wants(new):
        return "Type", f"{before.type} -> {after.type}"
    if not wants(new):
        return None
    for reason, one, other in (
        ("LoadBalancerSourceRanges", _ranges(before), _ranges(after)),
        ("LoadbalancerIP", before.load_balancer_ip, after.load_balancer_ip),
        ("ExternalTrafficPolicy", before.external_traffic_policy, after.external_traffic_policy),
        ("HealthCheckNodePort", before.health_check_node_port, after.health_check_node_port),
    ):
        if one != other:
            return reason, f"{one} -> {other}"
    return None


def _ranges(spec: ServiceSpec) -> str:
    return f"[{' '.join(spec.load_balancer_source_ranges)}]"
