"""What a user waits for, beside the raw CRI calls of the same run: start, pods ready, debugging, deletion;
and what an idle podling costs.

`python bench/pods.py [ROUNDS]` starts a podling of its own in a temporary directory and ends it. Times are
those an API client over HTTPS sees: from sending the request to the watch event that says it is so. podling
and the raw calls take turns, each on a containerd of its own.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop
from cri_floor import AT_ONCE, DELETED, IMAGE, INITS, Floor, Measuring, bench_image, measuring
from table import Measurement, report

from podling.client import kubeconfig
from podling.client.client import Client
from podling.cri.grpc.client import GrpcRuntime
from podling.cri.images.archive import load_images
from podling.cri.interface import Runtime
from podling.machine import node_runtime
from podling.machine.instance import SUBNETS, Instance
from podling.model.codec import json
from podling.model.types.container import VolumeMount
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.volume import Volume

PORT = 16999
PODLING = [sys.executable, "-m", "podling"]
APP = {"name": "app", "image": IMAGE, "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"]}
IDLE_SECONDS = 10
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


class Watcher:
    """Knows every pod of the default namespace as the API server's watch tells it, and who waits for what."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pods: dict[str, Pod | None] = {}
        self._waiting: list[tuple[str, Callable[[Pod | None], bool], asyncio.Event]] = []

    async def run(self, version: str) -> None:
        while True:
            async for events in self._client.watch(Pod, "default", resource_version=version):
                for event in events:
                    version = event.object.metadata.resource_version
                    if event.type != "BOOKMARK":
                        self._seen(
                            event.object.metadata.name, None if event.type == "DELETED" else event.object
                        )

    async def until(self, name: str, holds: Callable[[Pod | None], bool]) -> None:
        if name in self._pods and holds(self._pods[name]):
            return
        event = asyncio.Event()
        self._waiting.append((name, holds, event))
        await event.wait()

    def _seen(self, name: str, pod: Pod | None) -> None:
        self._pods[name] = pod
        for entry in [e for e in self._waiting if e[0] == name and e[1](pod)]:
            self._waiting.remove(entry)
            entry[2].set()


def ready(pod: Pod | None) -> bool:
    return pod is not None and any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)


def gone(pod: Pod | None) -> bool:
    return pod is None


def debugging(pod: Pod | None) -> bool:
    return pod is not None and any(s.state.running for s in pod.status.ephemeral_container_statuses)


def pod_of(name: str, inits: int) -> Pod:
    init = [{"name": f"i{n}", "image": IMAGE, "command": ["true"]} for n in range(inits)]
    spec = {"containers": [APP], "initContainers": init, "terminationGracePeriodSeconds": 30}
    return json.from_data({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Pod)


class Bench:
    """`runtime` is podling's own: an object may be gone a little before the last of its pod is, and the next
    measurement waits for that, as the raw calls do."""

    def __init__(self, client: Client, watcher: Watcher, runtime: Runtime) -> None:
        self._client = client
        self._runtime = runtime
        self._watcher = watcher
        self.samples: dict[str, list[float]] = {}

    async def timed(self, what: str, name: str, act: Any, holds: Callable[[Pod | None], bool]) -> None:
        began = time.perf_counter()
        await act
        await self._watcher.until(name, holds)
        self.samples.setdefault(what, []).append((time.perf_counter() - began) * 1000)

    async def round(self, number: int) -> None:
        for inits in INITS:
            name = f"pod{inits}-{number}"
            await self.timed(f"{inits} init", name, self._client.create(pod_of(name, inits)), ready)
            if inits == 0:
                await self.timed("ephemeral", name, self._debug(name), debugging)
            deleting = self._client.delete(Pod, name, "default")
            await self.timed("delete" if inits == DELETED else "other deletions", name, deleting, gone)
            await self._cleared()

    async def with_claim(self, number: int) -> None:
        """As a StatefulSet makes both: the claim has the default class."""
        name = f"claimed-{number}"
        await self.timed("claim", name, self._claim_and_create(name), ready)
        await self.timed("other deletions", name, self._client.delete(Pod, name, "default"), gone)
        await self._client.delete(PersistentVolumeClaim, name, "default")
        await self._cleared()

    async def _claim_and_create(self, name: str) -> None:
        wants = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
        meta = {"name": name, "namespace": "default"}
        await self._client.create(json.from_data({"metadata": meta, "spec": wants}, PersistentVolumeClaim))
        pod = pod_of(name, 0)
        source = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        pod.spec.volumes = [json.from_data(source, Volume)]
        pod.spec.containers[0].volume_mounts = [VolumeMount(name="data", mount_path="/data")]
        await self._client.create(pod)

    async def _debug(self, name: str) -> None:
        debugger = {**APP, "name": "debugger", "targetContainerName": "app"}
        await self._client.patch(
            Pod,
            name,
            "default",
            {"spec": {"ephemeralContainers": [debugger]}},
            subresource="ephemeralcontainers",
            patch_type="application/strategic-merge-patch+json",
        )

    async def burst(self, number: int) -> None:
        names = [f"burst-{number}-{n}" for n in range(AT_ONCE)]
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for name in names:
                tasks.create_task(self._client.create(pod_of(name, 0)))
                tasks.create_task(self._watcher.until(name, ready))
        self.samples.setdefault("burst", []).append(AT_ONCE / (time.perf_counter() - began))
        async with asyncio.TaskGroup() as tasks:
            for name in names:
                tasks.create_task(self._client.delete(Pod, name, "default"))
                tasks.create_task(self._watcher.until(name, gone))
        await self._cleared()

    async def _cleared(self) -> None:
        while await self._runtime.list_pod_sandbox():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def podling(*arguments: str, directory: Path) -> float:
    """Run a podling command; the milliseconds it took."""
    began = time.perf_counter()
    subprocess.run([*PODLING, *arguments, "--data-dir", str(directory)], check=True, capture_output=True)
    return (time.perf_counter() - began) * 1000


def memory_mb(pid: int | str) -> float:
    """Resident memory without what is shared with files (the interpreter's own pages count once)."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    pss = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(pss.split()[1]) / 1024


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def drive(instance: Instance, floor: Measuring, rounds: int) -> Bench:
    client = Client(kubeconfig.read(instance.kubeconfig).transport())
    watcher = Watcher(client)
    runtime = GrpcRuntime(str(node_runtime.settings(instance).socket))
    bench = Bench(client, watcher, runtime)
    version = (await client.list(Pod, "default")).resource_version
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watcher.run(version))
        await bench.round(-1)
        await bench.with_claim(-1)
        bench.samples.clear()
        for number in range(rounds):
            await floor.round()
            await bench.round(number)
            await bench.with_claim(number)
        for number in range(max(1, rounds // 4)):
            await floor.burst()
            await bench.burst(number)
        running.cancel()
    await runtime.close()
    await client.close()
    return bench


async def side_by_side(directory: Path, archive: Path, podling: Instance, rounds: int) -> tuple[Bench, Floor]:
    """podling, and the floor on a containerd of its own of the same configuration."""
    instance = Instance.at(directory / "floor")
    containerd = await node_runtime.start(instance, SUBNETS[-1], {})
    try:
        await load_images(containerd.settings.socket, archive)
        runtime = GrpcRuntime(str(containerd.settings.socket))
        async with measuring(runtime, IMAGE, instance.cgroup, directory / "logs") as floor:
            bench = await drive(podling, floor, rounds)
        await runtime.close()
        return bench, floor.floor
    finally:
        await node_runtime.end(instance)


def idle(pid: int) -> tuple[float, float]:
    """Memory in MB, and CPU in percent of a core."""
    before = cpu_seconds(pid)
    subprocess.run(["sleep", str(IDLE_SECONDS)], check=True)
    return memory_mb(pid), (cpu_seconds(pid) - before) / IDLE_SECONDS * 100


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="podling-bench-") as name:
        directory = Path(name)
        archive = directory / "bench.tar"
        archive.write_bytes(bench_image())
        data = directory / "data"
        instance = Instance.at(data)
        up = ["up", "--detach", "--port", str(PORT)]
        try:
            first = podling(*up, directory=data)
            podling("down", directory=data)
            again = []
            for _ in range(3):
                again.append(podling(*up, directory=data))
                podling("down", directory=data)
            podling(*up, directory=data)
            podling("images", "load", str(archive), directory=data)
            pid = instance.running()
            assert pid is not None
            memory, cpu = idle(pid)
            bench, floor = uvloop.run(side_by_side(directory, archive, instance, rounds))
            loaded = memory_mb(pid)
        finally:
            podling("down", directory=data)
    report(
        "pods",
        [
            Measurement("first start, empty data directory: node Ready", "ms", [first], goal="≤ 1000 ms"),
            Measurement("start again: node Ready", "ms", again, goal="≤ 1000 ms"),
            Measurement("memory, idle", "MB", [memory], goal="≤ 110 MB"),
            Measurement("memory, after these pods", "MB", [loaded]),
            Measurement("CPU, idle", "%", [cpu], goal="≤ 1 %"),
            *beside(bench.samples, floor),
        ],
    )


def beside(samples: dict[str, list[float]], floor: Floor) -> list[Measurement]:
    return [
        *(
            Measurement(
                f"pod, {inits} init + 1 app: POST to Ready",
                "ms",
                samples[f"{inits} init"],
                floor.ready[inits],
                "≤ 1.25 x",
            )
            for inits in INITS
        ),
        Measurement("raw calls, 0 init, that ask for nothing", "ms", floor.bare, floor.ready[0]),
        Measurement("ephemeral: PATCH to running", "ms", samples["ephemeral"], floor.ephemeral, "≤ 1.3 x"),
        Measurement("pod with a claim: both POSTs to Ready", "ms", samples["claim"], goal="≤ 250 ms"),
        Measurement("DELETE to gone", "ms", samples["delete"], floor.delete, "≤ 1.25 x"),
        Measurement(f"{AT_ONCE} pods at once: all Ready", "/s", samples["burst"], floor.burst, "≥ 0.85 x"),
    ]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
