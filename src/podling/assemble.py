"""Builds the parts and runs them in one task group: the only file that knows them all.

prepare ─┬─▶ containerd, pods' network, pause image ───┬─▶ kubelet ─▶ ready └─▶ storage ─▶ API server ─▶
controllers ─────┘

Ending goes the other way: pods are stopped while the API server still takes what the kubelet has to say, then
the runtime and the network, then the API server and the store. What `run` starts is ended by `run`, however
it ends, short of being killed; what was killed is found by the next start, or ended by `stop`.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import uvloop

from podling import __version__, node_runtime
from podling.apiserver.authn.authenticator import AUTHENTICATED
from podling.apiserver.authz.interim import MASTERS
from podling.apiserver.discovery import Discovery
from podling.apiserver.health import HealthPaths
from podling.apiserver.http import listening, tls_context
from podling.apiserver.local import LocalTransport
from podling.apiserver.openapi.documents import OpenAPI
from podling.apiserver.proxy import KubeletProxy
from podling.apiserver.registry.kinds import KINDS
from podling.apiserver.request import User
from podling.apiserver.server import ApiServer
from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.informers import Informers
from podling.controllers import all as controllers
from podling.controllers.controller import run as run_controller
from podling.controllers.service_accounts import DEFAULT as DEFAULT_ACCOUNT
from podling.cri.containerd import Containerd
from podling.cri.grpc.client import GrpcRuntime
from podling.cri.process import Process
from podling.instance import Instance
from podling.kubelet.config import KubeletConfig
from podling.kubelet.kubelet import Kubelet
from podling.kubelet.serving.server import KubeletServer, server_tls
from podling.model.node import Node
from podling.model.pod import Pod
from podling.model.service_account import ServiceAccount
from podling.model.time import Clock, SystemClock
from podling.node_runtime import ImageStore, open_images
from podling.pki import KeyPair
from podling.prepare import API_HOST, Prepared, StartError, UpOptions, prepare
from podling.scheduler.loop import SCHEDULER_NAME, Scheduler
from podling.storage.compactor import compact_forever
from podling.storage.interface import Storage
from podling.storage.sqlite.file import DataFileError
from podling.storage.sqlite.store import open as open_sqlite

__all__ = ["ImageStore", "StartError", "UpOptions", "open_images", "run", "stop"]

LONGEST_START = 30.0
"""Seconds after which nobody waits for the node to be ready any more."""
STOP_GRACE = 60.0
"""Seconds a podling that was told to stop has before `podling down` ends it."""

Report = Callable[[str], None]

log = logging.getLogger(__name__)


def run(options: UpOptions, report: Report, ready: Callable[[], None]) -> None:
    """Run podling until it is told to stop by SIGTERM or SIGINT; `ready` is called once pods can run.

    Raises StartError.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    uvloop.run(_run(options, report, ready))


def stop(instance: Instance, report: Report) -> None:
    """End the podling of `instance` and everything it runs, also what one that was killed left. Raises
    StartError.
    """
    asyncio.run(_stop(instance, report))


@dataclass(frozen=True, slots=True)
class _Plane:
    """A control plane that answers: what the other parts reach it by."""

    server: ApiServer
    storage: Storage

    def client(self, user: str, *groups: str) -> Client:
        """A client in this process, in the name of `user`."""
        return Client(LocalTransport(self.server.handle, User(user, (*groups, AUTHENTICATED))))


async def _run(options: UpOptions, report: Report, ready: Callable[[], None]) -> None:
    clock = SystemClock()
    prepared = prepare(options, clock.now())
    told_to_stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told_to_stop.set)
    with prepared.lock:
        try:
            async with asyncio.TaskGroup() as tasks:
                starting = tasks.create_task(_containerd(options, prepared, report))
                async with _control_plane(prepared, clock) as plane:
                    await _live(options, prepared, clock, plane, starting, ready, told_to_stop, report)
        except* StartError as errors:
            await node_runtime.end(options.instance)
            raise _first(errors) from errors
        if not options.cri_endpoint:
            await node_runtime.end(options.instance)


async def _containerd(options: UpOptions, prepared: Prepared, report: Report) -> Containerd | None:
    """A private containerd that serves; None when another runtime is to be used."""
    if options.cri_endpoint:
        return None
    report("Starting containerd")
    return await node_runtime.start(options.instance, prepared.subnet, options.registry_mirrors)


def kubelet_tls(client: KeyPair, ca: Path) -> ssl.SSLContext:
    """How the API server speaks to kubelets: both ends show certificates of the cluster's authority."""
    context = ssl.create_default_context(cafile=str(ca))
    context.load_cert_chain(client.certificate, client.key)
    return context


@asynccontextmanager
async def _control_plane(prepared: Prepared, clock: Clock) -> AsyncIterator[_Plane]:
    """Storage and API server, listening."""
    instance = prepared.instance
    try:
        storage = await open_sqlite(instance.database)
    except DataFileError as error:
        raise StartError(str(error)) from error
    try:

        async def find_node(name: str) -> Node:
            return await _Plane(server, storage).client("system:apiserver", MASTERS).get(Node, name)

        server = ApiServer.build(
            storage,
            KINDS,
            clock=clock,
            connector=KubeletProxy(find_node, kubelet_tls(prepared.apiserver_client, prepared.ca)),
            paths=(Discovery(KINDS, __version__), OpenAPI(KINDS, __version__), HealthPaths({}, {})),
        )
        await server.start()
        tls = tls_context(prepared.apiserver.certificate, prepared.apiserver.key, prepared.ca)
        async with listening(server.handle, API_HOST, prepared.port, tls, end_streams=server.close):
            yield _Plane(server, storage)
    finally:
        await storage.close()


async def _live(
    options: UpOptions,
    prepared: Prepared,
    clock: Clock,
    plane: _Plane,
    starting: asyncio.Task[Containerd | None],
    ready: Callable[[], None],
    told_to_stop: asyncio.Event,
    report: Report,
) -> None:
    """Everything that acts on objects, from the first reconciliation to the last pod stopped."""
    report(f"API server on https://{API_HOST}:{prepared.port}")
    started = asyncio.Event()

    def is_ready() -> None:
        ready()
        started.set()

    async with asyncio.TaskGroup() as tasks:
        acting = [
            tasks.create_task(compact_forever(plane.storage)),
            tasks.create_task(_control(prepared, clock, plane, started)),
        ]
        containerd = await starting
        runtime = GrpcRuntime(str(containerd.settings.socket) if containerd else options.cri_endpoint)
        if containerd is not None:
            acting.append(tasks.create_task(containerd.supervise(log.error)))
        report(f"Starting node {prepared.node_name}")
        client = plane.client(f"system:node:{prepared.node_name}", "system:nodes")
        events = EventRecorder(client, clock, "kubelet", prepared.node_name)
        kubelet = Kubelet(client, runtime, events, clock, _kubelet_config(prepared))
        acting.append(tasks.create_task(events.run()))
        acting.append(tasks.create_task(kubelet.run()))
        acting.append(tasks.create_task(_serve_kubelet(prepared, clock, kubelet)))
        acting.append(tasks.create_task(_say_ready(prepared, plane, kubelet, is_ready)))
        await told_to_stop.wait()
        for task in acting:
            task.cancel()
    report("Stopping pods")
    await kubelet.stop_all()
    await runtime.close()


async def _control(prepared: Prepared, clock: Clock, plane: _Plane, started: asyncio.Event) -> None:
    """Controllers and scheduler. What no pod waits for begins once podling has `started`."""
    client = plane.client("system:kube-controller-manager")
    informers = Informers(client)
    scheduling = plane.client("system:kube-scheduler")
    events = EventRecorder(scheduling, clock, SCHEDULER_NAME)
    first = controllers.first(client, informers, prepared.ca.read_text())
    scheduler = Scheduler(scheduling, informers.of(Pod), informers.of(Node), events, clock)
    async with asyncio.TaskGroup() as tasks:
        await informers.start(tasks)
        for controller in first:
            tasks.create_task(run_controller(controller))
        tasks.create_task(events.run())
        tasks.create_task(scheduler.run())
        with suppress(TimeoutError):
            await asyncio.wait_for(started.wait(), LONGEST_START)
        told = EventRecorder(client, clock, "kube-controller-manager")
        rest = controllers.rest(client, informers, told, clock, prepared.node_ip, prepared.port)
        await informers.start(tasks)
        for controller in rest:
            tasks.create_task(run_controller(controller))
        tasks.create_task(told.run())


async def _serve_kubelet(prepared: Prepared, clock: Clock, kubelet: Kubelet) -> None:
    """The kubelet's own server, for as long as it runs."""
    server = KubeletServer(kubelet, clock)
    tls = server_tls(prepared.kubelet.certificate, prepared.kubelet.key, prepared.ca)
    try:
        async with server.listening(prepared.node_ip, prepared.kubelet_port, tls):
            await server.run()
    except OSError as error:
        raise StartError(f"the kubelet cannot listen on port {prepared.kubelet_port}: {error}") from error


def _kubelet_config(prepared: Prepared) -> KubeletConfig:
    instance = prepared.instance
    return KubeletConfig(
        node_name=prepared.node_name,
        root_dir=instance.kubelet_dir,
        log_dir=instance.pod_logs_dir,
        node_ip=prepared.node_ip,
        kubelet_port=prepared.kubelet_port,
        cgroup_root=instance.cgroup,
        pod_cidr=prepared.subnet,
    )


async def _say_ready(prepared: Prepared, plane: _Plane, kubelet: Kubelet, ready: Callable[[], None]) -> None:
    """Once the node is Ready and a pod can be created in the default namespace."""
    # The status of a node that was here before is only true once this kubelet has looked.
    await kubelet.wait_ready()
    client = plane.client("system:apiserver", MASTERS)
    node_ready, account_there = asyncio.Event(), asyncio.Event()

    def node_seen(old: Node | None, new: Node | None) -> None:
        if new is not None and new.metadata.name == prepared.node_name and _is_ready(new):
            node_ready.set()

    def account_seen(old: ServiceAccount | None, new: ServiceAccount | None) -> None:
        if new is not None and new.metadata.name == DEFAULT_ACCOUNT:
            account_there.set()

    nodes, accounts = Informer(client, Node), Informer(client, ServiceAccount, "default")
    nodes.subscribe(node_seen)
    accounts.subscribe(account_seen)
    async with asyncio.TaskGroup() as tasks:
        following = [tasks.create_task(nodes.run()), tasks.create_task(accounts.run())]
        await node_ready.wait()
        await account_there.wait()
        for task in following:
            task.cancel()
    ready()


def _is_ready(node: Node) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)


async def _stop(instance: Instance, report: Report) -> None:
    pid = instance.running()
    if pid is not None:
        report(f"Stopping podling (process {pid}) and its pods")
        try:
            await Process(pid).terminate(STOP_GRACE)
        except ProcessLookupError:
            log.debug("process %d ended by itself", pid)
    lock = instance.lock()
    if lock is None:
        raise StartError(f"another podling has just started for {instance.data_dir}")
    with lock:
        left = await node_runtime.end(instance)
    if pid is None:
        what = "ended what an earlier one had left" if left else "nothing to stop"
        report(f"podling is not running for {instance.data_dir}: {what}")


def _first(errors: BaseExceptionGroup[StartError]) -> StartError:
    """The error to show of a group: its first, since the others followed from it."""
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
