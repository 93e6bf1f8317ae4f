"""How fast a Deployment is available: its ReplicaSet and pods made, bound and, by a hollow kubelet, running;
and how fast the indexes of a Job are made, bound, ended by that kubelet, and counted.

podling's API server, scheduler and controllers are in one process, as in `podling up`; the floor is
podling's API server with Kubernetes' kube-controller-manager and kube-scheduler beside it. The kubelet is
hollow in both: as soon as it sees a pod bound it calls it ready, or succeeded if it is a Job's. Run with
`python bench/workloads.py`; `PODLING_UPSTREAM` names a directory whose `unpack DIR` makes Kubernetes'
programs.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import uvloop
from scheduling import no_node, node
from table import Measurement, report

from podling.apiserver.aggregation.inquiry import fault_of
from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.paths.discovery import Discovery
from podling.apiserver.request.request import User
from podling.assemble.alone import read_access
from podling.assemble.controllers import CONTROLLERS, run_all
from podling.client.client import Client
from podling.client.informer import Informer, Informers
from podling.controllers.kubernetes_service import Servers
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.rules.jobs import is_finished
from podling.model.time import SystemClock
from podling.model.types.apps import Deployment
from podling.model.types.batch import Job
from podling.model.types.core import Namespace, ServiceAccount
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.pod import Pod
from podling.model.types.rbac import AUTHENTICATED, MASTERS
from podling.storage.sqlite.store import open as open_sqlite

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from peer.control_plane import podling
from peer.server import running
from ports import free_port

REPLICAS = 30
ROUNDS = 5
MANY = 1000
INDEXES, AT_ONCE, FEWER = 500, 100, 100
"""Of a Job, and of that of Kubernetes' controllers, which write twenty times a second."""
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@asynccontextmanager
async def all_in_one() -> AsyncIterator[Client]:
    with tempfile.TemporaryDirectory() as directory:
        storage = await open_sqlite(Path(directory) / "state.db")
        discovery = Discovery(KINDS, "1.0.0")
        server = ApiServer.build(storage, KINDS, clock=SystemClock(), connector=no_node, paths=(discovery,))
        await server.start()
        await server.have_default_roles()

        def client(user: str, *groups: str) -> Client:
            return Client(LocalTransport(server.handle, User(user, (*groups, AUTHENTICATED))))

        started = asyncio.Event()
        started.set()
        acting = run_all(
            client,
            Informers(client(CONTROLLERS)),
            "",
            None,
            Servers("192.0.2.1"),
            6443,
            "10.96.0.0/16",
            SystemClock(),
            url="https://192.0.2.1:6443",
            started=started,
            fault_of=partial(fault_of, server.aggregation),
            believed={},
            measure=lambda measured: None,
        )
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(acting)
            yield client("bench", MASTERS)
            task.cancel()
        server.close()
        await storage.close()


@asynccontextmanager
async def with_kubernetes_programs(programs: Path) -> AsyncIterator[Client]:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name)
        server = stack.enter_context(podling(directory))
        common = {"kubeconfig": server.kubeconfig, "leader-elect": "false", "bind-address": "127.0.0.1"}
        for program in ("kube-controller-manager", "kube-scheduler"):
            flags = {**common, "secure-port": free_port(), "cert-dir": directory / program}
            command = [str(programs / program), *(f"--{flag}={value}" for flag, value in flags.items())]
            stack.enter_context(running(command, directory / f"{program}.log"))
        client = Client(read_access(server.kubeconfig).transport())
        yield client
        await client.close()


async def prepare(client: Client) -> None:
    made: list[KubeObject] = [
        Namespace(metadata=ObjectMeta(name="default")),
        ServiceAccount(metadata=ObjectMeta(name="default", namespace="default")),
        node(0),
    ]
    for one in made:
        try:
            await client.create(one)
        except StatusError as error:
            if error.code != 409:
                raise


async def hollow_kubelet(client: Client, tasks: asyncio.TaskGroup) -> None:
    """Calls pods ready that are bound."""
    bound: asyncio.Queue[Pod] = asyncio.Queue()

    def changed(old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.spec.node_name and not (old and old.spec.node_name):
            bound.put_nowait(new)

    async def run() -> None:
        while True:
            meta = (await bound.get()).metadata
            is_of_job = any(owner.kind == Job.KIND for owner in meta.owner_references)
            status = {"phase": "Succeeded"} if is_of_job else READY
            await client.patch(Pod, meta.name, meta.namespace, {"status": status}, subresource="status")

    pods = Informer(client, Pod)
    pods.subscribe(changed)
    tasks.create_task(pods.run())
    for _ in range(8):
        tasks.create_task(run())
    await pods.wait_synced()


async def available(
    client: Client, deployments: Informer[Deployment], prefix: str, count: int, each: int
) -> float:
    """Seconds until `count` Deployments of `each` pods are available."""
    left, done = {f"{prefix}-{number}" for number in range(count)}, asyncio.Event()

    def changed(old: Deployment | None, new: Deployment | None) -> None:
        if new is not None and new.status.available_replicas == each:
            left.discard(new.metadata.name)
            if not left:
                done.set()

    deployments.subscribe(changed)
    names = iter(sorted(left))
    began = time.perf_counter()

    async def create() -> None:
        for name in names:
            await client.create(deployment(name, each))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(8):
            tasks.create_task(create())
    await done.wait()
    return time.perf_counter() - began


def deployment(name: str, replicas: int) -> Deployment:
    labels = {"app": name}
    container = {"name": "app", "image": "busybox:1"}
    body: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    return from_data(body, Deployment)


async def completed(client: Client, jobs: Informer[Job], name: str, indexes: int) -> float:
    """How many indexes of a Job a second are completed."""
    done = asyncio.Event()

    def changed(old: Job | None, new: Job | None) -> None:
        if new is not None and new.metadata.name == name and is_finished(new):
            done.set()

    jobs.subscribe(changed)
    container = {"name": "app", "image": "busybox:1"}
    body: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "completionMode": "Indexed",
            "completions": indexes,
            "parallelism": AT_ONCE,
            "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
        },
    }
    began = time.perf_counter()
    await client.create(from_data(body, Job))
    await done.wait()
    return indexes / (time.perf_counter() - began)


class Over(Exception):
    """What was to be measured was."""


class Times(NamedTuple):
    """Of each round, in milliseconds; of many Deployments of one pod, in seconds; and indexes a second."""

    rounds: list[float]
    many: float
    indexes: float


async def times(client: Client, *, many: int = 0, indexes: int = INDEXES) -> Times:
    rounds, whole, rate = [], 0.0, 0.0
    try:
        async with asyncio.TaskGroup() as tasks:
            await prepare(client)
            await hollow_kubelet(client, tasks)
            deployments, jobs = Informer(client, Deployment), Informer(client, Job)
            for informer in (deployments, jobs):
                tasks.create_task(informer.run())
                await informer.wait_synced()
            # The first one waits for what has just started.
            await available(client, deployments, "first", 1, 1)
            for number in range(ROUNDS):
                took = await available(client, deployments, f"round-{number}", 1, REPLICAS)
                rounds.append(1000 * took)
            rate = await completed(client, jobs, "work", indexes)
            if many:
                whole = await available(client, deployments, "many", many, 1)
            raise Over
    except* Over:
        pass
    return Times(rounds, whole, rate)


def unpacked(directory: Path) -> Path:
    unpack = Path(os.environ["PODLING_UPSTREAM"]) / "unpack"
    subprocess.run([unpack, directory], check=True, capture_output=True)
    return directory


async def measure() -> list[Measurement]:
    with tempfile.TemporaryDirectory() as directory:
        async with with_kubernetes_programs(unpacked(Path(directory))) as client:
            theirs = await times(client, indexes=FEWER)
    async with all_in_one() as client:
        ours = await times(client, many=MANY)
    name = f"Deployment of {REPLICAS} hollow pods available"
    return [
        Measurement(name, "ms", ours.rounds, theirs.rounds, "<= 0.3 x floor"),
        Measurement(f"{MANY:,} Deployments of one hollow pod available", "s", [ours.many], goal="<= 25 s"),
        Measurement(
            f"hollow indexes of a Job of {INDEXES} completed",
            "/s",
            [ours.indexes],
            [theirs.indexes],
            ">= 100 /s",
        ),
    ]


if __name__ == "__main__":
    report("workloads", uvloop.run(measure()))
