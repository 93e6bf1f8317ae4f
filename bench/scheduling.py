"""How fast pods get their nodes: a control plane in one process, with no kubelet behind its nodes.

The API server keeps its state in SQLite, durably; the scheduler and the clients reach it through the
in-process transport, as everything in `podling up` does. Eight clients create pods as fast as they are let,
the scheduler binds them; the clock runs from the first create to the last binding seen. The floor is the same
without a scheduler: the same eight clients create the pods and, when all are there, post the bindings
themselves, as concurrently as the scheduler does. Run with `python bench/scheduling.py`; `--profile FILE`
writes a py-spy flame graph of the large run instead.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop
from table import Measurement, report

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.apiserver.request.response import Response
from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informers
from podling.model.codec.json import from_data
from podling.model.time import SystemClock
from podling.model.types.core import Namespace, ServiceAccount
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import Node
from podling.model.types.pod import Binding, Pod
from podling.model.types.references import ObjectReference
from podling.scheduler.loop import BINDERS, SCHEDULER_NAME, Scheduler
from podling.storage.sqlite.store import open as open_sqlite

CLIENTS = 8
NODES, PODS = 500, 5000
ROUNDS = 3
GROWTH = (1, 10, 100, 500)
GROWTH_PODS = 1000
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
APP = {"app": "web"}

SPREAD: dict[str, object] = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": APP},
        }
    ]
}
PREFER_APART: dict[str, object] = {
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "podAffinityTerm": {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": APP}},
                }
            ]
        }
    }
}


async def no_node(context: object, obj: object) -> Response:
    raise NotImplementedError


@asynccontextmanager
async def control_plane(nodes: int) -> AsyncIterator[Client]:
    """An API server with its furniture; what it hands out is a client of it."""
    with tempfile.TemporaryDirectory() as directory:
        storage = await open_sqlite(Path(directory) / "state.db")
        server = ApiServer.build(storage, KINDS, clock=SystemClock(), connector=no_node)
        await server.start()
        client = Client(LocalTransport(server.handle, User("bench", ("system:masters",))))
        await client.create(Namespace(metadata=ObjectMeta(name="default")))
        await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="default")))
        for number in range(nodes):
            await client.create(node(number))
        yield client
        server.close()
        await storage.close()


def node(number: int) -> Node:
    name = f"node-{number:03}"
    room = {"cpu": "64", "memory": "256Gi", "pods": "2000"}
    return from_data(
        {
            "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: f"zone-{number % 3}"}},
            "status": {"allocatable": room, "capacity": room},
        },
        Node,
    )


def pod(number: int, spec: dict[str, object]) -> Pod:
    requests = {"cpu": "10m", "memory": "16Mi"}
    container = {"name": "app", "image": "busybox:1", "resources": {"requests": requests}}
    return from_data(
        {
            "metadata": {"name": f"pod-{number}", "namespace": "default", "labels": APP},
            "spec": {"containers": [container], **spec},
        },
        Pod,
    )


class Stopwatch:
    """When each pod was created, and when it was seen with a node."""

    def __init__(self, expected: int) -> None:
        self._left = expected
        self._created: dict[str, float] = {}
        self._bound: dict[str, float] = {}
        self._cpu = time.process_time()
        self.done = asyncio.Event()

    def created(self, name: str) -> None:
        self._created[name] = time.perf_counter()

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.spec.node_name and not (old and old.spec.node_name):
            self._bound[new.metadata.name] = time.perf_counter()
            self._left -= 1
            if not self._left:
                self._cpu = time.process_time() - self._cpu
                self.done.set()

    def rate(self) -> float:
        return len(self._bound) / (max(self._bound.values()) - min(self._created.values()))

    def cpu(self) -> float:
        """Microseconds of processor time a pod: of everybody, the clients and the disk's thread too."""
        return 1e6 * self._cpu / len(self._bound)

    def waits(self) -> list[float]:
        """Milliseconds."""
        return [1000 * (self._bound[name] - since) for name, since in self._created.items()]


async def scheduled(nodes: int, pods: int, spec: dict[str, object]) -> Stopwatch:
    async with control_plane(nodes) as client:
        informers, watch = Informers(client), Stopwatch(pods)
        events = EventRecorder(client, SystemClock(), SCHEDULER_NAME)
        scheduler = Scheduler(client, informers, events, SystemClock())
        informers.of(Pod).subscribe(watch.pod_changed)
        ready = asyncio.Event()

        async def live() -> None:
            async with asyncio.TaskGroup() as tasks:
                await informers.start(tasks)
                tasks.create_task(events.run())
                tasks.create_task(scheduler.run())
                ready.set()

        async with asyncio.TaskGroup() as tasks:
            living = tasks.create_task(live())
            await ready.wait()
            await create(client, pods, spec, watch.created)
            await watch.done.wait()
            living.cancel()
        return watch


async def floor(nodes: int, pods: int) -> tuple[float, float]:
    """Pods a second when somebody knows where each goes, and the processor's microseconds a pod."""
    async with control_plane(nodes) as client:
        began, cpu = time.perf_counter(), time.process_time()
        await create(client, pods, {}, lambda name: None)
        numbers = iter(range(pods))

        async def bind() -> None:
            for number in numbers:
                meta = ObjectMeta(name=f"pod-{number}", namespace="default")
                target = ObjectReference(kind="Node", name=f"node-{number % nodes:03}")
                body = Binding(metadata=meta, target=target)
                await client.create_subresource(Pod, meta.name, "binding", body)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(BINDERS):
                tasks.create_task(bind())
        return pods / (time.perf_counter() - began), 1e6 * (time.process_time() - cpu) / pods


async def create(client: Client, pods: int, spec: dict[str, object], created: Callable[[str], None]) -> None:
    numbers = iter(range(pods))

    async def one_client() -> None:
        for number in numbers:
            made = pod(number, spec)
            created(made.metadata.name)
            await client.create(made)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(CLIENTS):
            tasks.create_task(one_client())


async def measure() -> list[Measurement]:
    size = f"{PODS:,} pods on {NODES} nodes"
    floors, runs = [], []
    for _ in range(ROUNDS):
        floors.append(await floor(NODES, PODS))
        runs.append(await scheduled(NODES, PODS, {}))
    rates, cpu = zip(*floors, strict=True)
    lowest = statistics.median(rates)
    results = [
        measurement(f"{size}, {CLIENTS} clients", runs, lowest, ">= 300/s"),
        Measurement("the same, created to bound", "ms", [wait for run in runs for wait in run.waits()]),
        Measurement("the floor: created and bound by who knows where", "/s", rates, cpu=cpu),
    ]
    for name, spec in (("hard spread over zones", SPREAD), ("preferring to be apart", PREFER_APART)):
        runs = [await scheduled(NODES, PODS, spec)]
        results.append(measurement(f"{size}, {name}", runs, lowest))
    for nodes in GROWTH:
        runs = [await scheduled(nodes, GROWTH_PODS, {}) for _ in range(ROUNDS)]
        results.append(measurement(f"{GROWTH_PODS:,} pods on {nodes} nodes", runs))
    return results


def measurement(
    name: str, runs: Sequence[Stopwatch], lowest: float | None = None, goal: str = ""
) -> Measurement:
    cpu = [run.cpu() for run in runs]
    return Measurement(name, "/s", [run.rate() for run in runs], lowest, goal, cpu=cpu)


def profile(output: str) -> None:
    spy = str(Path(sys.executable).with_name("py-spy"))
    command = [spy, "record", "-p", str(os.getpid()), "-d", "60", "-r", "200", "-o", output]
    with subprocess.Popen(command) as recording:
        uvloop.run(scheduled(NODES, PODS, {}))
        recording.send_signal(signal.SIGINT)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--profile", output]:
            profile(output)
        case _:
            report("scheduling", uvloop.run(measure()))
