"""Storage and API server: their settings and certificates, and running them. Everything else is a client of
them.
"""

from __future__ import annotations

import resource
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from datetime import timedelta
from pathlib import Path

import msgspec

from podling import __version__
from podling.apiserver.assemble import ApiServer
from podling.apiserver.authn.tokens import SigningKey
from podling.apiserver.connect.kubelet import KubeletProxy
from podling.apiserver.connect.kubelets import Kubelets
from podling.apiserver.http.connections import Connections, limits_for
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.http.server import listening, tls_context
from podling.apiserver.kinds.kinds import kinds
from podling.apiserver.observe.audit_file import AuditFile, audit_file
from podling.apiserver.observe.audit_rotation import Rotation
from podling.apiserver.paths.discovery import Discovery
from podling.apiserver.paths.openapi.documents import OpenAPI
from podling.apiserver.request.context import AUTHENTICATED
from podling.apiserver.request.request import User
from podling.assemble.settle import LOOPBACK, AuditOptions
from podling.client.client import Client
from podling.machine.instance import Instance
from podling.machine.pki import Authority, KeyPair
from podling.machine.start import DamagedError, StartError
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.rules.addresses import first_address
from podling.model.time import Clock
from podling.model.types.node import Node
from podling.model.types.rbac import MASTERS
from podling.model.types.service import Endpoints
from podling.process.metrics import gate_metrics
from podling.process.tls import connecting_context
from podling.storage.interface import Storage
from podling.storage.sqlite.store import open as open_sqlite
from podling.storage.sqlite.whole import DamagedFileError, DataFileError

NO_AUDIT = "off"
KUBELET_CLIENT = "kube-apiserver-kubelet-client"
"""The user that the API server is to kubelets; it is in `system:masters`."""


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
    kubelet_ca: Path | None = None
    gates: Gates = DEFAULT_GATES
    audit: AuditOptions = AuditOptions()


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
        gates=gates,
        audit=audit,
    )


def api_server_hosts(address: str, service: str) -> list[str]:
    """The names and addresses the API server's certificate is for; `service` is that of the service
    `kubernetes`."""
    parts = ["kubernetes", "default", "svc", "cluster", "local"]
    names = [".".join(parts[:count]) for count in (1, 2, 3, 5)]
    return list(dict.fromkeys(["localhost", *names, LOOPBACK, service, address]))


class Plane(msgspec.Struct, frozen=True):
    """A control plane that answers, as the other parts of its process use it."""

    server: ApiServer
    storage: Storage
    kubelets: Kubelets

    def client(self, user: str, *groups: str) -> Client:
        """A client in this process, in the name of `user`."""
        return Client(LocalTransport(self.server.handle, User(user, (*groups, AUTHENTICATED))))

    def own_client(self) -> Client:
        return self.client("system:apiserver", MASTERS)


@asynccontextmanager
async def control_plane(settings: ServerSettings, clock: Clock) -> AsyncIterator[Plane]:
    """Run storage and API server while the block runs. Raises StartError."""
    try:
        storage = await open_sqlite(settings.instance.database)
    except DamagedFileError as error:
        raise DamagedError(str(error)) from error
    except DataFileError as error:
        raise StartError(str(error)) from error

    def find_node(name: str) -> Node:
        return server.objects.get(Node, "", name)

    def find_endpoints(namespace: str, name: str) -> Endpoints:
        return server.objects.get(Endpoints, namespace, name)

    async with AsyncExitStack() as running:
        running.push_async_callback(storage.close)
        kubelets = Kubelets(kubelet_tls(settings.kubelet_client, settings.kubelet_ca))
        served = kinds(settings.gates)
        address = f"{settings.address}:{settings.port}"
        server = ApiServer.build(
            storage,
            served,
            clock=clock,
            connector=KubeletProxy(find_node, find_endpoints, kubelets),
            paths=(Discovery(served, __version__, address), OpenAPI(served, __version__)),
            audit=await running.enter_async_context(_audit_log(settings, clock)),
            signing_key=SigningKey.of_pem(settings.signing_key.read_bytes()),
            address=address,
            mount_tokens=True,
        )
        server.metrics.add(lambda: gate_metrics(settings.gates))
        await server.start()
        tls = tls_context(settings.serving.certificate, settings.serving.key, settings.ca)
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        connections = Connections(limits_for(descriptors))
        for host in settings.hosts:
            listens = listening(
                server.handle, host, settings.port, tls, end_streams=server.close, connections=connections
            )
            try:
                await running.enter_async_context(listens)
            except OSError as error:
                why = f"the API server cannot listen on {host}, port {settings.port}: {error}"
                raise StartError(why) from error
        yield Plane(server, storage, kubelets)


def _audit_log(settings: ServerSettings, clock: Clock) -> AbstractAsyncContextManager[AuditFile | None]:
    options = settings.audit
    if options.path == NO_AUDIT:
        return nullcontext()
    chosen = None if options.path == "-" else Path(options.path or settings.instance.audit_log)
    age = timedelta(days=options.max_age_days)
    rotation = Rotation(options.max_size_mib << 20, options.max_backups, age)
    return audit_file(chosen, clock, rotation)


def kubelet_tls(client: KeyPair, ca: Path | None) -> ssl.SSLContext:
    """The TLS context for requests to kubelets: it shows the API server's client certificate, and trusts
    `ca`, or any certificate without one."""
    context = connecting_context(ca.read_bytes() if ca else None, verify=ca is not None)
    context.load_cert_chain(client.certificate, client.key)
    return context
