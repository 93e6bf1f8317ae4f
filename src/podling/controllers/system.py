"""Objects of the system: the system namespaces, the two system priority classes, the service `kubernetes`
with its endpoints, by which pods find the API server, and the ConfigMap by which API servers behind it know
whom to believe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificates
from msgspec.structs import replace

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key
from podling.controllers.endpoints import SERVICE_LABEL
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.rules.addresses import first_address
from podling.model.time import Clock
from podling.model.types.core import ConfigMap, Namespace
from podling.model.types.discovery import Endpoint, EndpointConditions, EndpointSlice, SlicePort
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.networking import ServiceCIDR
from podling.model.types.scheduling import SYSTEM_CLASSES, PriorityClass
from podling.model.types.service import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Service,
    ServicePort,
    ServiceSpec,
)

SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
NAME, NAMESPACE = "kubernetes", "default"
PORT = 443
COMPONENT = {"component": "apiserver", "provider": "kubernetes"}
BELIEVED: Key = ("kube-system", "extension-apiserver-authentication")
AUTHORITIES = ("client-ca-file", "requestheader-client-ca-file")
"""The keys of BELIEVED that have certificates; all others have names, as JSON."""
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"


class SystemPriorityClasses:
    """Creates the two classes once; a deleted one is created again at the next start, as in Kubernetes."""

    name = "system-priority-classes"

    def __init__(self, client: Client) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        for name in SYSTEM_CLASSES:
            self.queue.add(("", name))

    async def reconcile(self, key: Key) -> None:
        value, description = SYSTEM_CLASSES[key[1]]
        made = PriorityClass(metadata=ObjectMeta(name=key[1]), value=value, description=description)
        await _create(self._client, made)


class KubernetesService:
    """The service `kubernetes` and its endpoints, once its namespace and a range for its address exist: the
    first address of `cidr`. The API server is reached at `host` and `port`; anything else that is written
    there is corrected."""

    name = "kubernetes-service"

    def __init__(
        self,
        client: Client,
        namespaces: Informer[Namespace],
        services: Informer[Service],
        ranges: Informer[ServiceCIDR],
        host: str,
        port: int,
        cidr: str,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._namespaces = namespaces
        self._services = services
        self._ranges = ranges
        self._host, self._port = host, port
        self._wanted = service(first_address(cidr), port)
        namespaces.subscribe(self._began)
        ranges.subscribe(self._began)
        services.subscribe(self._changed)

    async def reconcile(self, key: Key) -> None:
        if self._namespaces.get("", NAMESPACE) is None or not any(self._ranges.items()):
            return
        known = self._services.get(*key)
        if known is None:
            await _create(self._client, self._wanted)
        elif not self._is_right(known):
            # The address stays what it is: another range may have been chosen since.
            spec = {**json.to_data(self._wanted.spec), "clusterIP": known.spec.cluster_ip}
            await self._client.patch(Service, NAME, NAMESPACE, {"spec": spec})
        await self._put(endpoints(self._host, self._port))
        await self._put(endpoint_slice(self._host, self._port))

    async def _put(self, wanted: Endpoints | EndpointSlice) -> None:
        try:
            await self._client.create(wanted)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            # It may say where an earlier server was.
            await self._client.update(wanted)

    def _began(self, old: KubeObject | None, new: KubeObject | None) -> None:
        if old is None and new is not None:
            self.queue.add((NAMESPACE, NAME))

    def _changed(self, old: Service | None, new: Service | None) -> None:
        changed = new or old
        if changed is None or (changed.metadata.namespace, changed.metadata.name) != (NAMESPACE, NAME):
            return
        if new is None or not self._is_right(new):
            self.queue.add((NAMESPACE, NAME))

    def _is_right(self, found: Service) -> bool:
        wanted = self._wanted.spec
        return (found.spec.type, found.spec.ports) == (wanted.type, wanted.ports)


async def _create(client: Client, obj: KubeObject) -> None:
    try:
        await client.create(obj)
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise


def service(address: str, port: int) -> Service:
    return Service(
        metadata=ObjectMeta(name=NAME, namespace=NAMESPACE, labels=COMPONENT),
        spec=ServiceSpec(
            type="ClusterIP",
            cluster_ip=address,
            ip_family_policy="SingleStack",
            ports=[ServicePort(name="https", protocol="TCP", port=PORT, target_port=port)],
        ),
    )


def endpoints(host: str, port: int) -> Endpoints:
    subset = EndpointSubset(
        addresses=[EndpointAddress(ip=host)], ports=[EndpointPort(name="https", port=port, protocol="TCP")]
    )
    meta = ObjectMeta(name=NAME, namespace=NAMESPACE, labels={SKIP_MIRROR: "true"})
    return Endpoints(metadata=meta, subsets=[subset])


def endpoint_slice(host: str, port: int) -> EndpointSlice:
    return EndpointSlice(
        metadata=ObjectMeta(name=NAME, namespace=NAMESPACE, labels={SERVICE_LABEL: NAME}),
        address_type="IPv4",
        endpoints=[Endpoint(addresses=[host], conditions=EndpointConditions(ready=True))],
        ports=[SlicePort(name="https", protocol="TCP", port=port)],
    )


class SystemNamespaces:
    name = "system-namespaces"

    def __init__(self, client: Client, namespaces: Informer[Namespace]) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._namespaces = namespaces
        namespaces.subscribe(self._changed)
        for name in SYSTEM_NAMESPACES:
            self.queue.add(("", name))

    async def reconcile(self, key: Key) -> None:
        if self._namespaces.get(*key) is None:
            await self._client.create(Namespace(metadata=ObjectMeta(name=key[1])))

    def _changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is None and old is not None and old.metadata.name in SYSTEM_NAMESPACES:
            self.queue.add(("", old.metadata.name))


class BelievedClients:
    """Publishes in the ConfigMap BELIEVED which clients and which proxies the API server believes, so that
    those behind it do, too. As in Kubernetes, what another API server has published stays beside it, until
    its certificates expire."""

    name = "cluster-authentication-trust"

    def __init__(
        self,
        client: Client,
        namespaces: Informer[Namespace],
        published: Informer[ConfigMap],
        believed: Mapping[str, Sequence[str]],
        clock: Clock,
    ) -> None:
        """`published` need not show other ConfigMaps; `believed` is by the keys of the ConfigMap, and
        certificates are in PEM."""
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._namespaces, self._published = namespaces, published
        self._believed = believed
        self._clock = clock
        namespaces.subscribe(self._changed)
        published.subscribe(self._changed)

    async def reconcile(self, key: Key) -> None:
        if self._namespaces.get("", BELIEVED[0]) is None:
            return
        known = self._published.get(*BELIEVED)
        data = combined(known.data if known else {}, self._believed, self._clock.now())
        if known is None:
            metadata = ObjectMeta(namespace=BELIEVED[0], name=BELIEVED[1])
            await _create(self._client, ConfigMap(metadata=metadata, data=data))
        elif known.data != data:
            await self._client.update(replace(known, data=data))

    def _changed(self, old: KubeObject | None, new: KubeObject | None) -> None:
        one = new or old
        if one is not None and one.metadata.name in BELIEVED:
            self.queue.add(BELIEVED)


def combined(
    published: Mapping[str, str], believed: Mapping[str, Sequence[str]], now: datetime
) -> dict[str, str]:
    """What is to be published: each thing once, no certificate that has expired, and nothing else."""
    data = {}
    for key, wanted in believed.items():
        if key in AUTHORITIES:
            parts = [published.get(key, ""), *wanted]
            data[key] = "".join(dict.fromkeys(one for part in parts for one in unexpired(part, now)))
        else:
            names = dict.fromkeys([*names_in(published.get(key, "[]")), *wanted])
            data[key] = msgspec.json.encode(list(names)).decode()
    return data


def unexpired(bundle: str, now: datetime) -> list[str]:
    try:
        found = load_pem_x509_certificates(bundle.encode())
    except ValueError:
        return []
    return [one.public_bytes(Encoding.PEM).decode() for one in found if one.not_valid_after_utc > now]


def names_in(text: str) -> list[str]:
    try:
        return msgspec.json.decode(text, type=list[str])
    except msgspec.DecodeError:
        return []
