"""The service `kube-dns`, by whose address pods ask, and the slice that says where cluster DNS listens.

The service has no selector, so nothing else writes slices for it. Once somebody gives it one, as the
manifests of CoreDNS do, the slice is taken away and the pods it selects answer.

Beside each of several API servers cluster DNS has a slice of its own, which names that server. The others
take it away once the server is not among the endpoints of the service `kubernetes` any more.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue, work
from podling.dns.server import PORT
from podling.dns.zone import DNS_NAMESPACE, DNS_SERVICE, SERVICE_LABEL
from podling.model.errors import StatusError
from podling.model.types.core import Namespace
from podling.model.types.discovery import Endpoint, EndpointConditions, EndpointSlice, SlicePort
from podling.model.types.meta import ObjectMeta, OwnerReference
from podling.model.types.service import Service, ServicePort, ServiceSpec

SLICE = "kube-dns-podling"
MANAGER = "dns.podling"
SERVER = "podling.io/api-server"
"""The annotation of a slice with the address of the API server beside which names are answered."""
API_SERVICE, API_NAMESPACE = "kubernetes", "default"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
LABELS = {"k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"}
PORTS = (("dns", "UDP"), ("dns-tcp", "TCP"))

log = logging.getLogger(__name__)


class Place(msgspec.Struct, frozen=True):
    """Cluster DNS listens at `address` and `port` of `node`; pods ask at `cluster_ip`. `server` is the
    address of the API server of this machine, if there are others."""

    cluster_ip: str
    address: str
    port: int
    node: str = ""
    server: str = ""

    @property
    def slice(self) -> str:
        return f"{SLICE}-{self.node}" if self.server else SLICE


class ServiceKeeper:
    """Makes the service once its namespace exists, where it is missing, and keeps the slice right. `run()`
    it."""

    name = "kube-dns"

    def __init__(
        self,
        client: Client,
        namespaces: Informer[Namespace],
        services: Informer[Service],
        slices: Informer[EndpointSlice],
        place: Place,
    ):
        self.queue: WorkQueue[None] = WorkQueue()
        self._client = client
        self._namespaces, self._services, self._slices = namespaces, services, slices
        self._place = place
        self._is_made = False
        namespaces.subscribe(self._began)
        services.subscribe(self._changed)
        slices.subscribe(self._changed)

    async def run(self) -> None:
        await work(self.queue, self.reconcile, self.name)

    async def reconcile(self, key: None) -> None:
        if self._namespaces.get("", DNS_NAMESPACE) is None:
            return
        service = self._services.get(DNS_NAMESPACE, DNS_SERVICE)
        if service is None:
            await self._make()
            return
        await self._take_away()
        known = self._slices.get(DNS_NAMESPACE, self._place.slice)
        if service.spec.selector:
            if known is not None:
                await self._client.delete(EndpointSlice, self._place.slice, DNS_NAMESPACE)
            return
        wanted = slice_of(service, self._place)
        if known is None:
            await self._client.create(wanted)
        elif (known.endpoints, known.ports) != (wanted.endpoints, wanted.ports):
            meta = replace(wanted.metadata, resource_version=known.metadata.resource_version)
            await self._client.update(replace(wanted, metadata=meta))

    async def _take_away(self) -> None:
        """Slices of servers that are gone, and what this node had before it shared the cluster, or shares it
        no more."""
        listed = self._slices.get(API_NAMESPACE, API_SERVICE)
        living = {address for one in listed.endpoints for address in one.addresses} if listed else set()
        for one in [*self._slices.of_namespace(DNS_NAMESPACE).values()]:
            if one.metadata.name != self._place.slice and is_over(one, living, self._place.node):
                with suppress_gone():
                    await self._client.delete(EndpointSlice, one.metadata.name, DNS_NAMESPACE)

    async def _make(self) -> None:
        """Once: a service that was deleted since is made again at the next start."""
        if self._is_made:
            return
        try:
            await self._client.create(service_at(self._place.cluster_ip))
        except StatusError as error:
            if error.code != 422:
                raise
            # Another service has its address, or it is of no range.
            log.error("pods have no %s: %s", DNS_SERVICE, error.message)
        self._is_made = True

    def _began(self, old: Namespace | None, new: Namespace | None) -> None:
        if old is None and new is not None and new.metadata.name == DNS_NAMESPACE:
            self.queue.add(None)

    def _changed(self, old: Service | EndpointSlice | None, new: Service | EndpointSlice | None) -> None:
        one = new or old
        assert one is not None
        if (one.metadata.namespace, one.metadata.name) in (
            (DNS_NAMESPACE, DNS_SERVICE),
            (API_NAMESPACE, API_SERVICE),
        ) or one.metadata.labels.get(MANAGED_BY) == MANAGER:
            self.queue.add(None)


@contextmanager
def suppress_gone() -> Iterator[None]:
    try:
        yield
    except StatusError as error:
        if error.code != 404:
            raise


def is_over(found: EndpointSlice, living: Collection[str], node: str) -> bool:
    """Whether a slice leads to cluster DNS of a server that is not among the living, or of `node`."""
    if found.metadata.labels.get(MANAGED_BY) != MANAGER:
        return False
    server = found.metadata.annotations.get(SERVER, "")
    is_own = bool(node) and any(endpoint.node_name == node for endpoint in found.endpoints)
    return is_own or bool(server and living and server not in living)


def service_at(cluster_ip: str) -> Service:
    ports = [
        ServicePort(name=name, protocol=protocol, port=PORT, target_port=PORT) for name, protocol in PORTS
    ]
    return Service(
        metadata=ObjectMeta(name=DNS_SERVICE, namespace=DNS_NAMESPACE, labels=LABELS),
        spec=ServiceSpec(
            type="ClusterIP", cluster_ip=cluster_ip, ip_family_policy="SingleStack", ports=ports
        ),
    )


def slice_of(service: Service, place: Place) -> EndpointSlice:
    meta = service.metadata
    owner = OwnerReference(api_version="v1", kind="Service", name=meta.name, uid=meta.uid)
    return EndpointSlice(
        metadata=ObjectMeta(
            name=place.slice,
            namespace=DNS_NAMESPACE,
            annotations={SERVER: place.server} if place.server else {},
            labels={SERVICE_LABEL: DNS_SERVICE, MANAGED_BY: MANAGER},
            owner_references=[owner],
        ),
        address_type="IPv6" if ":" in place.address else "IPv4",
        endpoints=[
            Endpoint(
                addresses=[place.address],
                conditions=EndpointConditions(ready=True, serving=True, terminating=False),
                node_name=place.node or None,
            )
        ],
        ports=[SlicePort(name=name, protocol=protocol, port=place.port) for name, protocol in PORTS],
    )
