"""The ranges of cluster IPs, and the repair of IPAddresses.

`DefaultRange` and `AddressRepair` are parts of Kubernetes' API server, `ServiceRanges` of its controller
manager. An IPAddress is made and removed together with its service; what people or other programs do to it
is repaired here. What an informer shows may be old, so nothing is repaired before the server was asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, TypeVar

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done, own_key
from podling.model.errors import StatusError
from podling.model.rules.addresses import (
    ALLOCATOR,
    MANAGED_BY,
    READY,
    address_of,
    cluster_ips,
    family,
    is_in_use,
    subnets,
)
from podling.model.time import Clock, moved, parse_time, rfc3339
from podling.model.types.meta import Condition, KubeObject, ObjectMeta
from podling.model.types.networking import IPAddress, ParentReference, ServiceCIDR, ServiceCIDRSpec
from podling.model.types.service import Service

T = TypeVar("T", bound=KubeObject)
Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

DEFAULT = "kubernetes"
FINALIZER = "networking.k8s.io/service-cidr-finalizer"
SERVER = "kube-apiserver"
"""The manager of what Kubernetes' API server makes by itself."""
DEFAULT_CONTROLLER, CONTROLLER = "kubernetes-service-cidr-controller", "service-cidr-controller"
DEFAULT_READY = "Kubernetes default Service CIDR is ready"
IS_READY = "Kubernetes Service CIDR is ready"
TERMINATING = "Terminating"
STILL_IN_USE = (
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
)
GRACE = timedelta(seconds=10)
"""How long a deleted range stays at least: each API server has heard of its deletion then."""
LEAKED_AFTER = timedelta(seconds=60)
"""How old an IPAddress is that can have no service: before, the service may still be on its way."""
REPAIRED = "ipallocator-repair-controller"
"""The name under which repairs are told of."""
LOST, STRAY = "ClusterIPNotAllocated", "IPAddressNotAllocated"


def _condition(status: str, message: str, now: str, reason: str = "") -> dict[str, Any]:
    told = {"type": READY, "status": status, "message": message, "lastTransitionTime": now}
    return {"conditions": [{**told, "reason": reason} if reason else told]}


def _covers(outer: Network, inner: Network) -> bool:
    return inner.network_address in outer and outer.prefixlen <= inner.prefixlen


def _is_in(networks: Iterable[Network], address: Address) -> bool:
    return any(address in network for network in networks)


def _ready(one: ServiceCIDR) -> Condition | None:
    return next((condition for condition in one.status.conditions if condition.type == READY), None)


class DefaultRange:
    """Keeps the ServiceCIDR `kubernetes`, which is the range that the API server was started with."""

    name = "default-service-range"

    def __init__(self, client: Client, ranges: Informer[ServiceCIDR], clock: Clock, cidr: str) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._ranges = ranges
        self._clock = clock
        self._cidrs = subnets(cidr)
        ranges.subscribe(own_key(self.queue, DEFAULT))
        self.queue.add(("", DEFAULT))

    async def reconcile(self, key: Key) -> None:
        known = self._ranges.get(*key)
        if known is None:
            spec = ServiceCIDRSpec(cidrs=self._cidrs)
            wanted = ServiceCIDR(metadata=ObjectMeta(name=DEFAULT), spec=spec)
            known = await self._client.create(wanted, manager=SERVER)
        elif known.spec.cidrs == self._cidrs[:1] != self._cidrs:
            # The second family came later.
            known = await self._client.update(replace(known, spec=ServiceCIDRSpec(cidrs=self._cidrs)))
        if known.metadata.deletion_timestamp or _ready(known) or known.spec.cidrs != self._cidrs:
            return
        status = _condition("True", DEFAULT_READY, rfc3339(self._clock.now()))
        await self._client.apply_status(ServiceCIDR, DEFAULT, DEFAULT_CONTROLLER, status)


class ServiceRanges:
    """Says that ranges are ready, and lets a deleted one go once no service has an address of it alone."""

    name = "service-ranges"

    def __init__(
        self, client: Client, ranges: Informer[ServiceCIDR], addresses: Informer[IPAddress], clock: Clock
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._ranges = ranges
        self._addresses = addresses
        self._clock = clock
        ranges.subscribe(own_key(self.queue))
        ranges.subscribe(self._look_again)
        addresses.subscribe(self._look_again)

    async def reconcile(self, key: Key) -> None:
        one = self._ranges.get(*key)
        if one is None:
            return
        meta, now = one.metadata, self._clock.now()
        if not meta.deletion_timestamp:
            if FINALIZER not in meta.finalizers:
                await self._write_finalizers(one, [*meta.finalizers, FINALIZER])
            await self._tell(one, "True", IS_READY)
        elif FINALIZER in meta.finalizers:
            left = moved(parse_time(meta.deletion_timestamp), GRACE) - now
            if self._is_needed(one):
                await self._tell(one, "False", STILL_IN_USE, TERMINATING)
            elif left > timedelta(0):
                self.queue.add_after(key, left.total_seconds())
            else:
                await self._write_finalizers(one, [other for other in meta.finalizers if other != FINALIZER])

    async def _write_finalizers(self, one: ServiceCIDR, finalizers: list[str]) -> None:
        meta = one.metadata
        changed = {"finalizers": finalizers, "resourceVersion": meta.resource_version}
        with gone_is_done():
            await self._client.patch(ServiceCIDR, meta.name, "", {"metadata": changed})

    async def _tell(self, one: ServiceCIDR, status: str, message: str, reason: str = "") -> None:
        told = _ready(one)
        if told is not None and (told.status, told.message, told.reason) == (status, message, reason):
            return
        wanted = _condition(status, message, rfc3339(self._clock.now()), reason)
        with gone_is_done():
            await self._client.apply_status(ServiceCIDR, one.metadata.name, CONTROLLER, wanted)

    def _is_needed(self, one: ServiceCIDR) -> bool:
        own, others = [ip_network(cidr) for cidr in one.spec.cidrs], self._in_use()
        if all(any(_covers(other, network) for other in others) for network in own):
            return False
        used = (
            ip_address(address.metadata.name)
            for address in self._addresses.items()
            if address.metadata.labels.get(MANAGED_BY) == ALLOCATOR
        )
        return any(_is_in(own, address) and not _is_in(others, address) for address in used)

    def _in_use(self) -> list[Network]:
        return [ip_network(cidr) for one in self._ranges.items() if is_in_use(one) for cidr in one.spec.cidrs]

    def _look_again(self, old: KubeObject | None, new: KubeObject | None) -> None:
        """A range that waits to go may, once an address or another range has changed."""
        if old is None and isinstance(new, IPAddress):
            return
        for one in self._ranges.items():
            if one.metadata.deletion_timestamp:
                self.queue.add(("", one.metadata.name))


class AddressRepair:
    """Makes the IPAddresses that services have lost, and removes those that belong to none. Keys are those of
    services, and of IPAddresses, which are in no namespace."""

    name = "address-repair"

    def __init__(
        self,
        client: Client,
        services: Informer[Service],
        addresses: Informer[IPAddress],
        ranges: Informer[ServiceCIDR],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._services = services
        self._addresses = addresses
        self._ranges = ranges
        self._events = events
        self._clock = clock
        services.subscribe(own_key(self.queue))
        addresses.subscribe(self._address_changed)

    async def reconcile(self, key: Key) -> None:
        if not key[0]:
            await self._check(key[1])
        elif (service := self._services.get(*key)) is not None:
            for address in cluster_ips(service):
                await self._restore(service, address)

    async def _restore(self, service: Service, address: str) -> None:
        """See to it that the address of the service is its own."""
        meta, where = service.metadata, f"[{family(address)}]: {address}"
        inside = any(
            ip_address(address) in ip_network(cidr) for one in self._ranges.items() for cidr in one.spec.cidrs
        )
        if not inside:
            why = f"Cluster IP {where} is not within any configured Service CIDR; please recreate service"
            self._events.warning(service, "ClusterIPOutOfRange", why)
            return
        wanted = address_of(service, address)
        known = self._addresses.get("", address)
        if known is not None and _is_right(known, wanted):
            return
        known = await self._find(IPAddress, "", address)
        if known is not None and _is_right(known, wanted):
            return
        if address not in await self._addresses_of(meta.namespace, meta.name):
            return
        if known is None:
            self._events.warning(service, LOST, f"Cluster IP {where} is not allocated; repairing")
        elif known.spec != wanted.spec:
            owner = _owner(known)
            if owner is not None and address in await self._addresses_of(*owner):
                why = f"ClusterIP {where} was assigned to multiple services; please recreate service"
                self._events.warning(service, "ClusterIPAlreadyAllocated", why)
                return
            named = f"the ClusterIP {where} for Service {meta.namespace}/{meta.name}"
            self._events.warning(service, LOST, f"{named} has a wrong reference; repairing")
        if known is not None:
            await self._remove(known)
        try:
            await self._client.create(wanted, manager=SERVER)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _check(self, name: str) -> None:
        """Remove the IPAddress if it is the allocator's and no service has it."""
        known = self._addresses.get("", name)
        if known is not None and (owner := _owner(known)) is not None:
            service = self._services.get(*owner)
            if service is not None and name in cluster_ips(service):
                return
        known = await self._find(IPAddress, "", name)
        if known is None or known.metadata.labels.get(MANAGED_BY) != ALLOCATOR:
            return
        owner = _owner(known)
        if owner is None:
            parent = f"not referencing a Service {_go(known.spec.parent_ref)}: cleaning up"
            reason, why = STRAY, f"IPAddress {name} appears to have been modified, {parent}"
        else:
            service = await self._find(Service, *owner)
            if service is not None and name in cluster_ips(service):
                return
            named = f"IPAddress: {name} for Service {owner[0]}/{owner[1]}"
            if service is not None:
                reason, why = "IPAddressWrongReference", f"{named} has a wrong reference; cleaning up"
            else:
                reason, why = STRAY, f"{named} appears to have leaked: cleaning up"
                left = parse_time(known.metadata.creation_timestamp) + LEAKED_AFTER - self._clock.now()
                if left > timedelta(0):
                    self.queue.add_after(("", name), left.total_seconds())
                    return
        self._events.warning(known, reason, why)
        await self._remove(known)
        for one in self._services.items():
            if name in one.spec.cluster_ips:
                self.queue.add((one.metadata.namespace, one.metadata.name))

    async def _remove(self, known: IPAddress) -> None:
        with gone_is_done():
            await self._client.delete(IPAddress, known.metadata.name, uid=known.metadata.uid)

    async def _addresses_of(self, namespace: str, name: str) -> list[str]:
        service = await self._find(Service, namespace, name)
        return cluster_ips(service) if service is not None else []

    async def _find(self, type_: type[T], namespace: str, name: str) -> T | None:
        """The object as it is now; None if there is none."""
        with gone_is_done():
            return await self._client.get(type_, name, namespace)
        return None

    def _address_changed(self, old: IPAddress | None, new: IPAddress | None) -> None:
        if new is not None:
            self.queue.add(("", new.metadata.name))
        if old is not None and (owner := _owner(old)) is not None:
            self.queue.add(owner)


def _owner(known: IPAddress) -> Key | None:
    """The service whose address it says it is."""
    parent = known.spec.parent_ref
    if parent is None or (parent.group, parent.resource) != ("", "services"):
        return None
    return parent.namespace, parent.name


def _is_right(known: IPAddress, wanted: IPAddress) -> bool:
    labels = known.metadata.labels
    return known.spec == wanted.spec and wanted.metadata.labels.items() <= labels.items()


def _go(parent: ParentReference | None) -> str:
    """As Go prints it."""
    if parent is None:
        return "nil"
    fields = {
        "Group": parent.group,
        "Resource": parent.resource,
        "Namespace": parent.namespace,
        "Name": parent.name,
    }
    return f"&ParentReference{{{''.join(f'{name}:{value},' for name, value in fields.items())}}}"
