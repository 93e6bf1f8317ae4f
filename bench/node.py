"""What a node's pods cost podling: memory and idle CPU as running pods grow to 200, on real containerd; and
1,000 pods on the hollow runtime, where nothing but podling works.

`python bench/node.py [PODS]` starts a podling of its own in a temporary directory and ends it.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
import time
from pathlib import Path

import uvloop
from cri_floor import IMAGE, bench_image
from pods import Watcher, gone, idle, memory_mb, pod_of, podling, ready
from table import Measurement, report

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.client import kubeconfig
from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.cri.hollow.runtime import HollowRuntime
from podling.cri.hollow.script import HollowImage, Script
from podling.kubelet.config import KubeletConfig
from podling.kubelet.kubelet import Kubelet
from podling.machine.instance import Instance
from podling.model.time import SystemClock
from podling.model.types.core import Namespace, ServiceAccount
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod
from podling.storage.memory import MemoryStorage

PORT = 16997
STEPS = (1, 10, 50, 100, 200)
AT_ONCE = 10
HOLLOW_PODS = 1_000
NODE, INIT = "hollow", "podling.local/init:1"
ENDS_AT_ONCE = HollowImage((Script(exit_code=0),), present=True)


async def grow(client: Client, watcher: Watcher, first: int, last: int) -> None:
    """Pods `first` to `last`, AT_ONCE starting at a time."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> None:
        async with turns:
            await client.create(pod_of(name, 0))
            await watcher.until(name, ready)

    async with asyncio.TaskGroup() as tasks:
        for number in range(first, last):
            tasks.create_task(one(f"pod-{number}"))


async def real(instance: Instance, most: int) -> list[Measurement]:
    pid = instance.running()
    assert pid is not None
    client = Client(kubeconfig.read(instance.kubeconfig).transport())
    watcher = Watcher(client)
    measured = []
    async with asyncio.TaskGroup() as tasks:
        version = (await client.list(Pod, "default")).resource_version
        following = tasks.create_task(watcher.run(version))
        running, first = 0, memory_mb(pid)
        for pods in [step for step in STEPS if step <= most]:
            await grow(client, watcher, running, pods)
            running = pods
            memory, cpu = await asyncio.to_thread(idle, pid)
            a_pod = (memory - first) * 1024 / pods
            measured += [
                Measurement(f"{pods} pods: memory beyond an empty node, a pod", "KB", [a_pod]),
                Measurement(f"{pods} pods: CPU, idle", "%", [cpu], goal="≤ 3 %" if pods == most else ""),
            ]
        began = time.perf_counter()
        async with asyncio.TaskGroup() as deleting:
            for number in range(running):
                deleting.create_task(client.delete(Pod, f"pod-{number}", "default"))
                deleting.create_task(watcher.until(f"pod-{number}", gone))
        took = time.perf_counter() - began
        measured.append(Measurement(f"{running} pods deleted at once", "/s", [running / took]))
        following.cancel()
    await client.close()
    return measured


async def hollow(directory: Path) -> list[Measurement]:
    """One kubelet with an API server beside it, in this process."""
    clock = SystemClock()
    server = ApiServer.build(MemoryStorage(), KINDS, clock=clock, connector=None)  # type: ignore[arg-type]
    await server.start()
    client = Client(LocalTransport(server.handle, User("root", ("system:masters",))))
    for namespace in ("default", "kube-node-lease"):
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
    await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="default")))
    places = directory / "kubelet", directory / "logs"
    config = KubeletConfig(NODE, *places, cgroup_mount=directory, max_pods=HOLLOW_PODS)
    events = EventRecorder(client, clock, "kubelet", NODE)
    runtime = HollowRuntime({IMAGE: HollowImage(present=True), INIT: ENDS_AT_ONCE})
    kubelet = Kubelet(client, runtime, events, clock, config)
    watcher = Watcher(client)
    async with asyncio.TaskGroup() as tasks:
        acting = [tasks.create_task(task) for task in (events.run(), kubelet.run(), watcher.run("1"))]
        await kubelet.wait_ready()
        gc.collect()
        memory, began, cpu = memory_mb("self"), time.perf_counter(), time.process_time()
        async with asyncio.TaskGroup() as creating:
            for number in range(HOLLOW_PODS):
                pod = pod_of(f"pod-{number}", 2)
                pod.spec.node_name = NODE
                for container in pod.spec.init_containers:
                    container.image = INIT
                creating.create_task(client.create(pod))
                creating.create_task(watcher.until(pod.metadata.name, ready))
        took, used = time.perf_counter() - began, time.process_time() - cpu
        gc.collect()
        grown = memory_mb("self") - memory
        # The kubelet's own watch has not brought all yet that its status writes say.
        await asyncio.sleep(10)
        cpu = time.process_time()
        await asyncio.sleep(10)
        resting = (time.process_time() - cpu) / 10 * 100
        for task in acting:
            task.cancel()
    return [
        Measurement(f"{HOLLOW_PODS} pods, 2 init, hollow runtime: Ready", "/s", [HOLLOW_PODS / took]),
        Measurement("CPU a pod, from POST to Ready", "ms", [used * 1000 / HOLLOW_PODS]),
        Measurement("memory a pod, API server's and runtime's included", "KB", [grown * 1024 / HOLLOW_PODS]),
        Measurement(f"{HOLLOW_PODS} pods: CPU, idle", "%", [resting]),
    ]


def main(pods: int) -> None:
    with tempfile.TemporaryDirectory(prefix="podling-bench-") as name:
        directory = Path(name)
        (directory / "hollow").mkdir()
        measured = uvloop.run(hollow(directory / "hollow"))
        archive = directory / "bench.tar"
        archive.write_bytes(bench_image())
        data = directory / "data"
        try:
            podling("up", "--detach", "--port", str(PORT), "--max-pods", str(pods + 10), directory=data)
            podling("images", "load", str(archive), directory=data)
            measured += uvloop.run(real(Instance.at(data), pods))
        finally:
            podling("down", directory=data)
    report("node", measured)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else STEPS[-1])
