"""A cluster of many nodes as pods grow: three API servers on an etcd that waits for the disk, a scheduler,
controllers, and kubelets on the runtime in memory; services each lead to a few of the pods.

`python bench/fleet.py [NODES PODS SERVICES]`, of 50, 5,000 and 1,000 if none are given; `PODLING_UPSTREAM`
makes etcd. Pods are created through all servers in turns, and followed by a watch of one.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import uvloop
from cri_floor import IMAGE
from plot import Line, plot
from pods import memory_mb, pod_of, ready
from server import cpu_seconds
from table import Measurement, report

from podling.assemble.process import started, tune
from podling.client import kubeconfig
from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.cri.hollow.runtime import HollowRuntime
from podling.cri.hollow.script import HollowImage
from podling.kubelet.config import KubeletConfig
from podling.kubelet.kubelet import Kubelet
from podling.model.codec import json
from podling.model.time import SystemClock
from podling.model.types.core import ConfigMap
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod
from podling.model.types.service import Service

NODES, PODS, SERVICES = 50, 5_000, 1_000
SERVERS, AT_ONCE, ROUNDS, RESTS = 3, 32, 50, 5
UNDER_WAY = 1_000
"""Pods that are created and not Ready yet, at most: so the rate is that of the whole, not of a queue."""
SHARES = (0.1, 0.25, 0.5, 1.0)
PODS_A_NODE = 110
NODES_A_CLIENT = 10
"""One process makes the connections of many machines: with a client for each it would make thousands at once,
which no machine does."""
PAUSE = 0.15
"""Seconds: a watch rests for 0.1 at most."""
DNS = "10.96.0.10"
LISTED = "/api/v1/namespaces/default/pods"


class Size(NamedTuple):
    """With so many pods: megabytes, pods a second, and milliseconds of each question."""

    pods: int
    rate: float
    memory: dict[str, float]
    idle: dict[str, float]
    """Percent of a core."""
    get: list[float]
    page: list[float]
    told: list[float]
    """From a PATCH at one server until a watch at the next has it, each right behind the one before."""
    alone: list[float]
    """The same, each once the watch does not rest any more from the one before (decision 019)."""


class Followed:
    """How many pods are Ready, as a server's watch tells it."""

    def __init__(self) -> None:
        self._ready: set[str] = set()
        self._changed = asyncio.Event()

    async def run(self, client: Client) -> None:
        version = (await client.list(Pod, "default")).resource_version
        while True:
            async for events in client.watch(Pod, "default", resource_version=version):
                for event in events:
                    version = event.object.metadata.resource_version
                    if event.type != "BOOKMARK" and ready(event.object):
                        self._ready.add(event.object.metadata.name)
                self._changed.set()

    async def until(self, pods: int) -> None:
        """Until so many are Ready."""
        while len(self._ready) < pods:
            self._changed.clear()
            await self._changed.wait()


def client_of(config: Path) -> Client:
    return Client(kubeconfig.read(config).transport())


async def nodes(config: Path, first: int, number: int, directory: Path) -> None:
    """So many kubelets in a process of their own."""
    clock = SystemClock()
    async with asyncio.TaskGroup() as tasks:
        kubelets = []
        for n in range(first, first + number):
            (own := directory / f"node-{n}").mkdir()
            places = own / "kubelet", own / "logs"
            told = KubeletConfig(
                f"node-{n}", *places, cgroup_mount=own, max_pods=PODS_A_NODE, cluster_dns=(DNS,)
            )
            if (n - first) % NODES_A_CLIENT == 0:
                client = client_of(config)
            events = EventRecorder(client, clock, "kubelet", told.node_name)
            kubelets.append(
                Kubelet(client, HollowRuntime({IMAGE: HollowImage(present=True)}), events, clock, told)
            )
            tasks.create_task(events.run())
            tasks.create_task(kubelets[-1].run())
        for kubelet in kubelets:
            await kubelet.wait_ready()
        started()
        print("ready", flush=True)


async def at_once(number: int, act: Callable[[int], Awaitable[object]]) -> None:
    numbers = count()

    async def work() -> None:
        while (n := next(numbers)) < number:
            await act(n)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(work())


async def timed(rounds: int, act: Callable[[int], Awaitable[object]]) -> list[float]:
    took = []
    for n in range(rounds):
        begun = perf_counter()
        await act(n)
        took.append((perf_counter() - begun) * 1000)
    return took


async def told(clients: Sequence[Client], pause: float = 0.0) -> list[float]:
    """Milliseconds from each PATCH until the watch of the next server has it, `pause` seconds apart."""
    writer, other = clients[:2]
    name = (await writer.create(ConfigMap(metadata=ObjectMeta(name="told", namespace="default")))).metadata
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def follow() -> None:
        version = name.resource_version
        async for events in other.watch(ConfigMap, "default", resource_version=version):
            for event in events:
                if event.type == "MODIFIED" and event.object.metadata.name == "told":
                    seen.put_nowait(event.object.data["n"])

    async def change(n: int) -> None:
        await writer.patch(ConfigMap, "told", "default", {"data": {"n": str(n)}})
        while await seen.get() != str(n):
            pass

    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(follow())
        took = []
        for n in range(2 * ROUNDS):
            await asyncio.sleep(pause)
            begun = perf_counter()
            await change(n)
            took.append((perf_counter() - begun) * 1000)
        following.cancel()
    await writer.delete(ConfigMap, "told", "default")
    return took


def service(number: int) -> Service:
    spec = {"selector": {"group": f"g{number}"}, "ports": [{"port": 80}]}
    return json.from_data({"metadata": {"name": f"s{number}", "namespace": "default"}, "spec": spec}, Service)


async def grown(configs: Sequence[Path], parts: dict[str, int], pods: int, services: int) -> list[Size]:
    """`parts` are process ids by name."""
    clients, sizes, followed, before = [client_of(one) for one in configs], [], Followed(), 0

    async def make(n: int) -> None:
        await followed.until(n - UNDER_WAY)
        pod = pod_of(f"pod-{n}", 0)
        pod.metadata.labels = {"group": f"g{n % services}"}
        pod.spec.automount_service_account_token = False
        # Else each container has seven variables of each service of its namespace, and kubelets that share a
        # process do little but make them.
        pod.spec.enable_service_links = False
        await clients[n % SERVERS].create(pod)

    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(followed.run(clients[-1]))
        await at_once(services, lambda n: clients[n % SERVERS].create(service(n)))
        for share in SHARES:
            most, first, begun = int(share * pods), before, perf_counter()
            await at_once(most - first, lambda n, first=first: make(first + n))  # type: ignore[misc]
            await followed.until(most)
            rate, before = (most - first) / (perf_counter() - begun), most
            spent = {name: cpu_seconds(pid) for name, pid in parts.items()}
            await asyncio.sleep(RESTS)
            idle = {name: (cpu_seconds(pid) - spent[name]) / RESTS * 100 for name, pid in parts.items()}
            memory = {name: memory_mb(pid) for name, pid in parts.items()}
            get = await timed(ROUNDS, lambda n: clients[n % SERVERS].get(Pod, "pod-0", "default"))
            page = await timed(ROUNDS, lambda n: clients[n % SERVERS].raw(LISTED, {"limit": "500"}))
            changes = await told(clients), await told(clients, PAUSE)
            sizes.append(Size(most, rate, memory, idle, get, page, *changes))
            print(sizes[-1].pods, f"{rate:.0f}/s", memory, idle, flush=True)
        following.cancel()
    for client in clients:
        await client.close()
    return sizes


def main(number: int, pods: int, services: int) -> None:
    # They need what tests need.
    from upstream import etcd_at, unpacked

    from peer import control_plane
    from peer.server import running
    from ports import free_port

    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="podling-bench-")))
        etcd = stack.enter_context(etcd_at(unpacked(directory / "programs"), directory))
        configs, parts = [], {"etcd": etcd.pids[0]}
        for n in range(SERVERS):
            own = directory / f"server-{n}"
            own.mkdir()
            if n:
                shutil.copytree(directory / "server-0" / "pki", own / "pki")
            flags = ("--etcd-servers", etcd.url)
            server, process = stack.enter_context(control_plane.podling_process(own, free_port(), *flags))
            configs.append(server.kubeconfig)
            parts[f"server {n}"] = process.pid
        control_plane.until_default(server)
        pki = directory / "server-0" / "pki"
        signing = ["--cluster-signing-cert-file", str(pki / "ca.crt")]
        signing += ["--cluster-signing-key-file", str(pki / "ca.key")]
        for n, (part, more) in enumerate({"scheduler": [], "controllers": signing}.items()):
            command = [sys.executable, "-m", "podling", part, "--kubeconfig", str(configs[n])]
            # One of each is here, and none is to end because others take the machine from it for 10 s.
            command += ["--secure-port", "0", "--leader-elect=false", *more]
            parts[part] = stack.enter_context(running(command, directory / f"{part}.log")).pid
        for n in range(SERVERS):
            first, end = number * n // SERVERS, number * (n + 1) // SERVERS
            given = [str(configs[n]), str(first), str(end - first), str(directory)]
            command = [sys.executable, __file__, "nodes", *given]
            kubelets = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(kubelets.terminate)
            assert kubelets.stdout is not None and kubelets.stdout.readline() == b"ready\n"
            parts[f"kubelets {n}"] = kubelets.pid
        show(number, services, uvloop.run(grown(configs, parts, pods, services)))


def show(number: int, services: int, sizes: Sequence[Size]) -> None:
    measurements = []
    for size in sizes:
        what = f"{size.pods:,} pods"
        servers = [mb for name, mb in size.memory.items() if name.startswith("server ")]
        kubelets = [mb for name, mb in size.memory.items() if name.startswith("kubelets ")]
        measurements += [
            Measurement(f"{what}: created, scheduled and Ready", "/s", [size.rate]),
            Measurement(f"{what}: memory of an API server", "MB", servers),
            *(
                Measurement(f"{what}: memory of the {part}", "MB", [size.memory[part]])
                for part in ("etcd", "scheduler", "controllers")
            ),
            Measurement(f"{what}: memory of a kubelet", "MB", [sum(kubelets) / number]),
            Measurement(f"{what}: all processes at rest", "% of a core", [sum(size.idle.values())]),
            Measurement(f"{what}: GET by name", "ms", size.get),
            Measurement(f"{what}: LIST limit=500", "ms", size.page),
            Measurement(f"{what}: PATCH until the next server tells it", "ms", size.told),
            Measurement(f"{what}: the same, of a change alone", "ms", size.alone, goal="p99 ≤ 20 ms"),
        ]
    report(f"fleet, {number} nodes, {services:,} services", measurements)
    named = ("server 0", "etcd", "controllers")
    lines = [Line(name, [(size.pods, size.memory[name]) for size in sizes]) for name in named]
    plot("fleet", f"pods on {number} nodes", "megabytes", lines)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["nodes", config, first, number, directory]:
            tune()
            uvloop.run(nodes(Path(config), int(first), int(number), Path(directory)))
        case given:
            main(*(int(one) for one in given), *(NODES, PODS, SERVICES)[len(given) :])
