"""Storage and API server: their settings and certificates, and running them. Everything else is a client of
them.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from podling import __version__
from podling.apiserver.aggregation.passing import EXTRA_PREFIX, GROUP_HEADER, UID_HEADER, USER_HEADER
from podling.apiserver.assemble import ApiServer
from podling.apiserver.authn.tokens import SigningKey
from podling.apiserver.connect.kubelet import KubeletProxy
from podling.apiserver.connect.kubelets import Kubelets
from podling.apiserver.fairness.fairness import InFlightLimits
from podling.apiserver.http.connections import Connections, limits_for
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.http.server import listening, tls_context
from podling.apiserver.kinds.kinds import kinds
from podling.apiserver.kinds.metrics import MEASURED
from podling.apiserver.observe.authorization_metrics import authorization_metrics
from podling.apiserver.paths.discovery import Discovery
from podling.apiserver.paths.health import Fault
from podling.apiserver.paths.openapi.documents import OpenAPI
from podling.apiserver.request.request import User
from podling.apiserver.store.server_leases import ServerLeases
from podling.assemble.accounts import API_SERVER
from podling.assemble.admission import plugin_options
from podling.assemble.audit import audit_log
from podling.assemble.authentication import authentication
from podling.assemble.authorization import authorization
from podling.assemble.settle import (
    LOOPBACK,
    AdmissionOptions,
    AuditOptions,
    AuthenticationOptions,
    AuthorizationOptions,
    EncryptionOptions,
    EtcdOptions,
    InFlightOptions,
    ServingOptions,
)
from podling.client.client import Client
from podling.controllers.kubernetes_service import Servers
from podling.machine.instance import Instance
from podling.machine.pki import Authority, KeyPair, names_of
from podling.machine.start import DamagedError, StartError
from podling.model.codec import json
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.rules.addresses import family, first_address, subnets
from podling.model.time import Clock
from podling.model.types.apiregistration import APIService
from podling.model.types.core import Namespace
from podling.model.types.rbac import AUTHENTICATED, MASTERS
from podling.process.metrics import gate_metrics
from podling.process.tls import Reread, connecting_context, offer
from podling.storage.interface import MIGRATING, Storage, StorageClosedError, UnknownOutcomeError
from podling.storage.migration import CLUSTER
from podling.storage.sqlite.store import open as open_sqlite
from podling.storage.sqlite.whole import DamagedFileError, DataFileError, SealedFileError

if TYPE_CHECKING:
    from podling.assemble.encryption import Encryption

KUBELET_CLIENT = "kube-apiserver-kubelet-client"
"""The user that the API server is to kubelets; it is in `system:masters`."""
FRONT_PROXY = "front-proxy-client"
"""The user that the API server is to API servers behind it."""
LONGEST_LEAVE = 2.0
"""Seconds in which its address is taken away; otherwise its lease ends within 15."""

_log = logging.getLogger(__name__)


class FrontProxyFiles(NamedTuple):
    """What API servers behind this one are shown, and the authority that has signed it."""

    client: KeyPair
    ca: Path


class ServerSettings(msgspec.Struct, frozen=True):
    """The server listens on `hosts`; users reach it at the first, pods and nodes at `address`. Services get
    their addresses from `cidr`. Kubelets must show a certificate of `kubelet_ca`; without one any is
    accepted, which is kube-apiserver's default."""

    instance: Instance
    port: int
    hosts: tuple[str, ...]
    address: str
    cidr: str
    ca: Path
    serving: KeyPair
    kubelet_client: KeyPair
    signing_key: Path
    front_proxy: FrontProxyFiles
    kubelet_ca: Path | None = None
    gates: Gates = DEFAULT_GATES
    audit: AuditOptions = AuditOptions()
    authentication: AuthenticationOptions = AuthenticationOptions()
    authorization: AuthorizationOptions = AuthorizationOptions()
    in_flight: InFlightOptions = InFlightOptions()
    admission: AdmissionOptions = AdmissionOptions()
    encryption: EncryptionOptions = EncryptionOptions()
    showing: ServingOptions = ServingOptions()
    etcd: EtcdOptions = EtcdOptions()
    is_whole: bool = False
    """Whether scheduler and controllers run in this process, and what kubelets measure is served."""
    enforces_policies: bool = False
    """Whether its node enforces network policies."""
    sends_retry_after: bool = False
    """Whether it listens, as it ends, until what was asked is answered, and refuses what comes meanwhile."""


def server_settings(
    instance: Instance,
    port: int,
    address: str,
    cidr: str,
    authority: Authority,
    gates: Gates,
    audit: AuditOptions,
) -> ServerSettings:
    """The settings, with certificates and keys that are missing made."""
    hosts = api_server_hosts(address, first_address(cidr))
    # An authority of its own: whoever else had a certificate of it could name any user.
    front = authority.beside("front-proxy")
    front_proxy = FrontProxyFiles(front.client(FRONT_PROXY, FRONT_PROXY), front.ca.certificate)
    authority.due = min(authority.due, front.due)
    return ServerSettings(
        instance=instance,
        port=port,
        hosts=tuple(dict.fromkeys([LOOPBACK, address])),
        address=address,
        cidr=cidr,
        ca=authority.ca.certificate,
        serving=authority.server("apiserver", "kube-apiserver", hosts),
        kubelet_client=authority.client("apiserver-kubelet-client", KUBELET_CLIENT, [MASTERS]),
        signing_key=authority.signing_key("service-accounts"),
        front_proxy=front_proxy,
        gates=gates,
        audit=audit,
    )


def api_server_hosts(address: str, service: str) -> list[str]:
    """The names and addresses the API server's certificate is for; `service` is that of the service
    `kubernetes`."""
    parts = ["kubernetes", "default", "svc", "cluster", "local"]
    names = [".".join(parts[:count]) for count in (1, 2, 3, 5)]
    return list(dict.fromkeys(["localhost", *names, LOOPBACK, service, address]))


def believed(settings: ServerSettings) -> dict[str, list[str]]:
    """Which clients and which proxies API servers behind this one are told to believe, by the keys of the
    ConfigMap they read: those that this one believes, and itself."""
    given = settings.authentication
    clients = [settings.ca, settings.showing.client_ca]
    proxies = [given.proxy_ca]
    heard = {
        "allowed-names": [*given.proxy_names],
        "username-headers": [*given.proxy_users],
        "uid-headers": [*given.proxy_uids],
        "group-headers": [*given.proxy_groups],
        "extra-headers-prefix": [*given.proxy_extra_prefixes],
    }
    if settings.showing.proxy_client is None:
        proxies.append(settings.front_proxy.ca)
        # Without names anybody is believed who has a certificate.
        if given.proxy_ca is None or given.proxy_names:
            heard["allowed-names"].append(FRONT_PROXY)
        heard["username-headers"].append(USER_HEADER)
        heard["uid-headers"].append(UID_HEADER)
        heard["group-headers"].append(GROUP_HEADER)
        heard["extra-headers-prefix"].append(EXTRA_PREFIX)
    found = {"client-ca-file": [file.read_text() for file in clients if file is not None]}
    if any(proxies):
        found["requestheader-client-ca-file"] = [file.read_text() for file in proxies if file is not None]
        found |= {f"requestheader-{name}": said for name, said in heard.items()}
    return found


class Plane(msgspec.Struct, frozen=True):
    """A control plane that answers, as the other parts of its process use it."""

    server: ApiServer
    storage: Storage
    kubelets: Kubelets
    servers: Servers
    leases: ServerLeases | None
    """Of the addresses in `servers`, where several may write to the storage."""

    def client(self, user: str, *groups: str) -> Client:
        """A client in this process, in the name of `user`."""
        return Client(LocalTransport(self.server.handle, User(user, (*groups, AUTHENTICATED))))

    def own_client(self) -> Client:
        return self.client(API_SERVER, MASTERS)

    async def stay_listed(self) -> None:
        """Keep the address among those of the service `kubernetes`, until cancelled."""
        if self.leases is not None:
            await self.leases.renew()

    async def leave(self) -> None:
        """Make `/readyz` fail, and take the address from those of the service `kubernetes`."""
        self.server.drain()
        if self.leases is None:
            return
        try:
            async with asyncio.timeout(LONGEST_LEAVE):
                await self.leases.leave()
                if self.servers.addresses:
                    await self.servers.until_published()
        except (TimeoutError, StorageClosedError, UnknownOutcomeError) as error:
            _log.warning("the address of this API server is listed until its lease ends: %s", error)

    async def fault_of(self, service: APIService) -> str:
        """Why the server behind an APIService does not answer; empty if it does."""
        from podling.apiserver.aggregation.inquiry import fault_of

        return await fault_of(self.server.aggregation, service)


@asynccontextmanager
async def control_plane(settings: ServerSettings, clock: Clock) -> AsyncIterator[Plane]:
    """Run storage and API server while the block runs. Raises StartError."""

    def find(type: type[Any], namespace: str, name: str) -> Any:
        return server.objects.find(type, namespace, name)

    async with AsyncExitStack() as running:
        encryption = await _encryption(settings.encryption.keys)
        if encryption is not None:
            running.callback(encryption.close)
        storage = await running.enter_async_context(_storage(settings, encryption))
        kubelets = Kubelets(kubelet_tls(settings.kubelet_client, settings.kubelet_ca).get)
        served = kinds(settings.gates, enforces_policies=settings.enforces_policies)
        served += MEASURED if settings.is_whole else ()
        address, in_flight = f"{settings.address}:{settings.port}", settings.in_flight
        chosen = await running.enter_async_context(authorization(settings.authorization))
        discovery, openapi = Discovery(served, __version__, address), OpenAPI(served, __version__)
        server = ApiServer.build(
            storage,
            served,
            clock=clock,
            connector=KubeletProxy(find, kubelets),
            paths=(discovery, openapi),
            authentication=await running.enter_async_context(
                authentication(settings.authentication, settings.ca, clock, settings.showing.client_ca)
            ),
            audit=await running.enter_async_context(audit_log(settings.audit, settings.instance, clock)),
            signing_key=SigningKey.of_pem(settings.signing_key.read_bytes()),
            address=address,
            mount_tokens=True,
            is_whole=settings.is_whole,
            limits=InFlightLimits(in_flight.reads, in_flight.writes, in_flight.is_fair),
            choose=chosen.choose,
            plugins=settings.admission.plugins,
            families=[family(subnet) for subnet in subnets(settings.cidr)],
            plugin_options=await running.enter_async_context(plugin_options(settings.admission)),
            kubelets=kubelets if settings.is_whole else None,
            proxy_client=settings.showing.proxy_client or settings.front_proxy.client.files,
            key_providers=_key_providers(encryption, reloads=settings.encryption.reloads),
        )
        running.push_async_callback(server.ended)
        server.aggregation.discovery, server.aggregation.openapi = discovery, openapi
        server.metrics.add(lambda: authorization_metrics(chosen))
        server.metrics.add(lambda: gate_metrics(settings.gates))
        if encryption is not None:
            server.metrics.add(encryption.metrics)
        await server.start()
        await server.have_default_roles()
        proxy_ca = settings.authentication.proxy_ca
        authorities = [one for one in (settings.ca, settings.showing.client_ca, proxy_ca) if one is not None]
        tls = _tls(settings, authorities)
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        connections = Connections(limits_for(descriptors), refuses=settings.sends_retry_after)
        for host in settings.hosts:
            listens = listening(
                server.handle, host, settings.port, tls, end_streams=server.close, connections=connections
            )
            try:
                await running.enter_async_context(listens)
            except OSError as error:
                why = f"the API server cannot listen on {host}, port {settings.port}: {error}"
                raise StartError(why) from error
        servers, leases = Servers(settings.address), None
        if storage.is_shared:
            leases = ServerLeases(storage, settings.address, servers.change)
        yield Plane(server, storage, kubelets, servers, leases)


def _tls(settings: ServerSettings, authorities: Sequence[Path]) -> ssl.SSLContext:
    """Raises StartError for what was given and cannot be used."""
    showing = settings.showing
    shown = showing.shown or (settings.serving.certificate, settings.serving.key)
    try:
        others = [
            (certificate, key, given or names_of(certificate.read_bytes()))
            for certificate, key, given in showing.by_name
        ]
        spoken = offer(showing.oldest, showing.suites)
        return tls_context(*shown, *authorities, others=others, offer=spoken)
    except (OSError, ValueError) as error:
        raise StartError(f"the API server cannot show or believe what was given: {error}") from error


@asynccontextmanager
async def _storage(settings: ServerSettings, encryption: Encryption | None) -> AsyncIterator[Storage]:
    """Raises StartError."""
    if settings.etcd.servers:
        from podling.assemble.etcd import cluster_fault, open_etcd, port_fault

        shared = await open_etcd(settings.etcd)
        try:
            await _check_whole(shared)
            file, found = settings.instance.etcd_cluster, await cluster_in(shared)
            known = file.read_text() if file.exists() else ""
            if why := cluster_fault(known, found):
                raise StartError(f"--etcd-servers: {why}; remove {file} if it is to be served")
            if why := await port_fault(shared, settings.address, settings.port):
                raise StartError(why)
            file.write_text(found)
            yield shared
            # The first server of a new cluster has made it meanwhile.
            file.write_text(await cluster_in(shared))
        finally:
            await shared.close()
        return
    try:
        sealing = encryption.sealing if encryption else None
        storage = await open_sqlite(settings.instance.database, sealing)
    except (DamagedFileError, SealedFileError) as error:
        raise DamagedError(str(error)) from error
    except DataFileError as error:
        raise StartError(str(error)) from error
    async with AsyncExitStack() as running:
        running.push_async_callback(storage.close)
        await _check_whole(storage)
        if encryption is not None:
            kept_up = encryption.kept_up(storage, reloads=settings.encryption.reloads)
            await running.enter_async_context(kept_up)
        yield storage


async def cluster_in(storage: Storage) -> str:
    """The uid that identifies the cluster; empty if there is none."""
    record = await storage.get(CLUSTER)
    return json.decode(record.value, Namespace).metadata.uid if record else ""


async def _check_whole(storage: Storage) -> None:
    """Raises StartError."""
    if await storage.get(MIGRATING) is not None:
        raise StartError(
            "not all objects are here yet: `podling migrate-storage` was cut short; run it again, it goes on"
        )


async def _encryption(keys: Path | None) -> Encryption | None:
    """Raises StartError."""
    if keys is None:
        return None
    from podling.assemble.encryption import encryption_of

    return await encryption_of(keys)


def _key_providers(encryption: Encryption | None, *, reloads: bool) -> Fault | None:
    """The fault of KMS plugins, where there are any or may be."""
    return encryption.fault if encryption is not None and (encryption.plugins or reloads) else None


def kubelet_tls(client: KeyPair, ca: Path | None) -> Reread[ssl.SSLContext]:
    """The TLS context for requests to kubelets: it shows the API server's client certificate, and trusts
    `ca`, or any certificate without one."""

    def made() -> ssl.SSLContext:
        context = connecting_context(ca.read_bytes() if ca else None, verify=ca is not None)
        context.load_cert_chain(client.certificate, client.key)
        return context

    return Reread([client.certificate, client.key, *([ca] if ca else [])], made)
