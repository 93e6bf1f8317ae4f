"""The service `kubernetes` with its endpoints, by which pods find the API servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done, there_is_done
from podling.controllers.endpoints import SERVICE_LABEL
from podling.model.rules.addresses import family, first_address
from podling.model.rules.service_endpoints import API_NAMESPACE, API_SERVICE
from podling.model.types.core import Namespace
from podling.model.types.discovery import Endpoint, EndpointConditions, EndpointSlice, SlicePort
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.networking import ServiceCIDR
from podling.model.types.service import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Service,
    ServicePort,
    ServiceSpec,
)

T = TypeVar("T", Endpoints, EndpointSlice)

PORT = 443
COMPONENT = {"component": "apiserver", "provider": "kubernetes"}
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"


class Servers:
    """The addresses of all API servers of the cluster, in order. `published` are those that the endpoints
    have."""

    def __init__(self, *addresses: str) -> None:
        self.addresses: Sequence[str] = addresses
        self.published: Sequence[str] = ()
        self._listener: Callable[[], None] = lambda: None
        self._news = asyncio.Event()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever the endpoints are to be written."""
        self._listener = listener

    def change(self, addresses: Sequence[str]) -> None:
        self.addresses = addresses
        self._listener()

    def publish(self, addresses: Sequence[str]) -> None:
        """Those were written into the endpoints."""
        self.published = addresses
        self._news.set()

    async def until_published(self) -> None:
        """Returns once the endpoints have all addresses, and no other."""
        while self.published != self.addresses:
            self._news.clear()
            await self._news.wait()


class KubernetesService:
    """The service `kubernetes` and its endpoints, once its namespace and a range for its address exist: the
    first address of `cidr`. The service is made where there is none; what is written into it stays, as in
    Kubernetes. Into the endpoints the server's port is written the first time only: servers that were told
    different ports would write in turns."""

    name = "kubernetes-service"

    def __init__(
        self,
        client: Client,
        namespaces: Informer[Namespace],
        services: Informer[Service],
        ranges: Informer[ServiceCIDR],
        servers: Servers,
        port: int,
        cidr: str,
    ) -> None:
        """The API servers are reached at `port` of `servers`."""
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._namespaces = namespaces
        self._services = services
        self._ranges = ranges
        self._servers, self._port = servers, port
        self._service = service(first_address(cidr), port)
        self._corrects_port = True
        namespaces.subscribe(self._began)
        ranges.subscribe(self._began)
        services.subscribe(self._changed)
        servers.listen(lambda: self.queue.add((API_NAMESPACE, API_SERVICE)))

    async def reconcile(self, key: Key) -> None:
        if self._namespaces.get("", API_NAMESPACE) is None or not any(self._ranges.items()):
            return
        if self._services.get(*key) is None:
            with there_is_done():
                await self._client.create(self._service)
        addresses = self._servers.addresses
        if not addresses:
            # The last one leaves its address to pods that may outlive it, as in Kubernetes.
            return
        written = await self._put(
            Endpoints, lambda known: endpoints(addresses, self._port_beside(known), known)
        )
        (subset,) = written.subsets
        in_order, port = [address.ip for address in subset.addresses], subset.ports[0].port
        await self._put(EndpointSlice, lambda known: endpoint_slice(in_order, port, known))
        self._corrects_port = False
        self._servers.publish(addresses)

    def _port_beside(self, known: Endpoints | None) -> int:
        """The port of the endpoints, where `known` ones stand."""
        stand = known.subsets[0].ports if known and known.subsets else []
        return stand[0].port if len(stand) == 1 and not self._corrects_port else self._port

    async def _put(self, type_: type[T], wanted: Callable[[T | None], T]) -> T:
        known: T | None = None
        with gone_is_done():
            known = await self._client.get(type_, API_SERVICE, API_NAMESPACE)
        obj = wanted(known)
        if known is None:
            return await self._client.create(obj)
        return known if obj == known else await self._client.update(obj)

    def _began(self, old: KubeObject | None, new: KubeObject | None) -> None:
        if old is None and new is not None:
            self.queue.add((API_NAMESPACE, API_SERVICE))

    def _changed(self, old: Service | None, new: Service | None) -> None:
        gone = old if new is None else None
        if gone and (gone.metadata.namespace, gone.metadata.name) == (API_NAMESPACE, API_SERVICE):
            self.queue.add((API_NAMESPACE, API_SERVICE))


def service(address: str, port: int) -> Service:
    return Service(
        metadata=ObjectMeta(name=API_SERVICE, namespace=API_NAMESPACE, labels=COMPONENT),
        spec=ServiceSpec(
            type="ClusterIP",
            cluster_ip=address,
            ip_family_policy="SingleStack",
            ports=[ServicePort(name="https", protocol="TCP", port=PORT, target_port=port)],
        ),
    )


def endpoints(addresses: Sequence[str], port: int, known: Endpoints | None) -> Endpoints:
    """As they are to be. The order of known ones stays, which is Kubernetes' own where it wrote them."""
    meta = ObjectMeta(name=API_SERVICE, namespace=API_NAMESPACE, labels={SKIP_MIRROR: "true"})
    known = known or Endpoints(metadata=meta)
    ports = [EndpointPort(name="https", port=port, protocol="TCP")]
    if len(known.subsets) == 1:
        (subset,) = known.subsets
        found = [address.ip for address in subset.addresses]
        if sorted(found) == sorted(addresses) and subset.ports == ports and not subset.not_ready_addresses:
            return known
    return replace(known, subsets=[EndpointSubset([EndpointAddress(ip=ip) for ip in addresses], ports=ports)])


def endpoint_slice(addresses: Sequence[str], port: int, known: EndpointSlice | None) -> EndpointSlice:
    meta = ObjectMeta(name=API_SERVICE, namespace=API_NAMESPACE, labels={SERVICE_LABEL: API_SERVICE})
    known = known or EndpointSlice(metadata=meta, address_type=family(addresses[0]))
    ready = EndpointConditions(ready=True)
    return replace(
        known,
        endpoints=[Endpoint(addresses=[address], conditions=ready) for address in addresses],
        ports=[SlicePort(name="https", protocol="TCP", port=port)],
    )
