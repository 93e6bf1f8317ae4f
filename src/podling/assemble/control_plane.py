"""Storage and API server: their settings and certificates, the kubeconfigs by which clients reach them, and
running them. Everything else is a client of them.
"""

from __future__ import annotations

import resource
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from podling import __version__
from podling.apiserver.assemble import ApiServer
from podling.apiserver.authn.tokens import SigningKey
from podling.apiserver.authz.authorizers import MASTERS
from podling.apiserver.connect.kubelet import KubeletProxy
from podling.apiserver.connect.kubelets import Kubelets, unverified
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
from podling.assemble.audit_options import AuditOptions
from podling.client import kubeconfig
from podling.client.client import Client
from podling.controllers.system import ADDRESS as SERVICE_ADDRESS
from podling.machine.instance import Instance
from podling.machine.pki import Authority, KeyPair
from podling.machine.start import DamagedError, StartError
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.time import Clock
from podling.model.types.node import Node
from podling.model.types.service import Endpoints
from podling.process.metrics import gate_metrics
from podling.storage.interface import Storage
from podling.storage.sqlite.store import open as open_sqlite
from podling.storage.sqlite.whole import DamagedFileError, DataFileError

LOOPBACK = "127.0.0.1"
CLUSTER_NAME = "podling"
KUBELET_CLIENT = "kube-apiserver-kubelet-client"
"""The user that the API server is to kubelets; it is in `system:masters`."""
PARTS = {"scheduler": "system:kube-scheduler", "controller-manager": "system:kube-controller-manager"}
"""The names, without `.conf`, of the kubeconfigs of parts that run alone, and their users."""


class ServerSettings(msgspec.Struct, frozen=True):
    """The server listens on `hosts`; users reach it at the first, pods and nodes at `address`. Kubelets must
    show a certificate of `kubelet_ca`; without one any is accepted, which is kube-apiserver's default."""

    instance: Instance
    port: int
    hosts: tuple[str, ...]
    address: str
    ca: Path
    serving: KeyPair
    kubelet_client: KeyPair
    signing_key: Path
    kubelet_ca: Path | None = None
    gates: Gates = DEFAULT_GATES
    audit: AuditOptions = AuditOptions()


def server_settings(
    instance: Instance, port: int, address: str, authority: Authority, gates: Gates, audit: AuditOptions
) -> ServerSettings:
    """The settings, with certificates and keys that are missing made."""
    return ServerSettings(
        instance=instance,
        port=port,
        hosts=tuple(dict.fromkeys([LOOPBACK, address])),
        address=address,
        ca=authority.ca.certificate,
        serving=authority.server("apiserver", "kube-apiserver", api_server_hosts(address)),
        kubelet_client=authority.client("apiserver-kubelet-client", KUBELET_CLIENT, [MASTERS]),
        signing_key=authority.signing_key("service-accounts"),
        gates=gates,
        audit=audit,
    )


def api_server_hosts(address: str) -> list[str]:
    """The names and addresses the API server's certificate is for."""
    service = "kubernetes.default.svc.cluster.local"
    parts = service.split(".")
    names = [".".join(parts[:count]) for count in (1, 2, 3, 5)]
    return list(dict.fromkeys(["localhost", *names, LOOPBACK, SERVICE_ADDRESS, address]))


def write_admin(instance: Instance, port: int, authority: Authority) -> None:
    admin = authority.client("admin", "kubernetes-admin", [MASTERS])
    _write(instance.kubeconfig, _local(port), authority, admin)


def write_parts(instance: Instance, port: int, authority: Authority) -> None:
    for name, user in PARTS.items():
        pair = authority.client(name, user)
        _write(instance.data_dir / f"{name}.conf", _local(port), authority, pair)


def write_node(instance: Instance, server: str, node: str, file: Path, now: datetime) -> None:
    """Write a kubeconfig for the kubelet of `node`, with a certificate of this API server's authority."""
    authority = Authority(instance.pki_dir, now)
    pair = authority.client(f"node-{node}", f"system:node:{node}", ["system:nodes"])
    _write(file, server, authority, pair)


def _local(port: int) -> str:
    return f"https://{LOOPBACK}:{port}"


def _write(file: Path, server: str, authority: Authority, client: KeyPair) -> None:
    kubeconfig.write(
        file,
        CLUSTER_NAME,
        server,
        certificate_authority=authority.ca.certificate.read_bytes(),
        client_certificate=client.certificate.read_bytes(),
        client_key=client.key.read_bytes(),
    )


NO_AUDIT = "off"


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
    try:

        def find_node(name: str) -> Node:
            return server.objects.get(Node, "", name)

        def find_endpoints(namespace: str, name: str) -> Endpoints:
            return server.objects.get(Endpoints, namespace, name)

        kubelets = Kubelets(kubelet_tls(settings.kubelet_client, settings.kubelet_ca))
        served = kinds(settings.gates)
        async with _audit_log(settings, clock) as audit:
            server = ApiServer.build(
                storage,
                served,
                clock=clock,
                connector=KubeletProxy(find_node, find_endpoints, kubelets),
                paths=(Discovery(served, __version__), OpenAPI(served, __version__)),
                audit=audit,
                signing_key=SigningKey.of_pem(settings.signing_key.read_bytes()),
                address=f"{settings.address}:{settings.port}",
                mount_tokens=True,
            )
            server.metrics.add(lambda: gate_metrics(settings.gates))
            await server.start()
            async with _listening(server, settings):
                yield Plane(server, storage, kubelets)
    finally:
        await storage.close()


def kubelet_tls(client: KeyPair, ca: Path | None) -> ssl.SSLContext:
    """The TLS context for requests to kubelets: it shows the API server's client certificate, and trusts
    `ca`, or any certificate without one."""
    context = ssl.create_default_context(cafile=str(ca)) if ca else unverified()
    context.load_cert_chain(client.certificate, client.key)
    return context


@asynccontextmanager
async def _audit_log(settings: ServerSettings, clock: Clock) -> AsyncIterator[AuditFile | None]:
    options = settings.audit
    if options.path == NO_AUDIT:
        yield None
        return
    chosen = None if options.path == "-" else Path(options.path or settings.instance.audit_log)
    age = timedelta(days=options.max_age_days)
    rotation = Rotation(options.max_size_mib << 20, options.max_backups, age)
    async with audit_file(chosen, clock, rotation) as audit:
        yield audit


@asynccontextmanager
async def _listening(server: ApiServer, settings: ServerSettings) -> AsyncIterator[None]:
    tls = tls_context(settings.serving.certificate, settings.serving.key, settings.ca)
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = Connections(limits_for(descriptors))
    async with AsyncExitStack() as listeners:
        for host in settings.hosts:
            listener = listening(
                server.handle, host, settings.port, tls, end_streams=server.close, connections=connections
            )
            try:
                await listeners.enter_async_context(listener)
            except OSError as error:
                why = f"the API server cannot listen on {host}, port {settings.port}: {error}"
                raise StartError(why) from error
        yield
