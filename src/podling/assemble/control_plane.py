"""Storage and API server: what answers. Everything else is its client."""

from __future__ import annotations

import resource
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import msgspec

from podling import __version__
from podling.apiserver.audit_file import AuditFile, audit_file
from podling.apiserver.audit_rotation import Rotation
from podling.apiserver.authn.authenticator import AUTHENTICATED
from podling.apiserver.authn.signing import SigningKey
from podling.apiserver.authz.interim import MASTERS
from podling.apiserver.connections import Connections, limits_for
from podling.apiserver.discovery import Discovery
from podling.apiserver.http import listening, tls_context
from podling.apiserver.kubelets import Kubelets, unverified
from podling.apiserver.local import LocalTransport
from podling.apiserver.openapi.documents import OpenAPI
from podling.apiserver.proxy import KubeletProxy
from podling.apiserver.registry.kinds import kinds
from podling.apiserver.request import User
from podling.apiserver.server import ApiServer
from podling.assemble.prepare_server import ServerSettings
from podling.client.client import Client
from podling.gate_metrics import gate_metrics
from podling.model.node import Node
from podling.model.service import Endpoints
from podling.model.time import Clock
from podling.pki import KeyPair
from podling.starting import DamagedError, StartError
from podling.storage.interface import Storage
from podling.storage.sqlite.store import open as open_sqlite
from podling.storage.sqlite.whole import DamagedFileError, DataFileError

NO_AUDIT = "off"


class Plane(msgspec.Struct, frozen=True):
    """A control plane that answers: what the other parts of its process reach it by."""

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
    """Storage and API server, listening. Raises StartError."""
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
    """How the API server speaks to kubelets: it shows its certificate, and believes those of `ca`, or all."""
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
