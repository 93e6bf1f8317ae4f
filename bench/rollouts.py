"""What controllers add to what real pods need: a rolling update, a StatefulSet with a claim, and idleness.

`python bench/rollouts.py [ROUNDS]` starts a podling of its own in a temporary directory and ends it. The
floor of the update is a client that replaces as many pods itself, as soon as it may with the same surge and
unavailability; that of the StatefulSet a client that makes the claim and the pod. They take turns.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop
from cri_floor import bench_image
from pods import APP, PORT, idle, podling, ready
from table import Measurement, report

from podling.client import kubeconfig
from podling.client.client import Client
from podling.client.informer import Informer
from podling.machine.instance import Instance
from podling.model.codec.json import from_data
from podling.model.types.apps import Deployment, StatefulSet
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.pod import Pod

REPLICAS, SURGE, UNAVAILABLE = 10, 3, 2
"""The limits are a Deployment's defaults, a quarter, of these replicas."""
NAMESPACE = "default"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}


def pod_spec(release: str, **fields: Any) -> dict[str, Any]:
    return {"containers": [{**APP, "env": [{"name": "RELEASE", "value": release}], **fields}]}


def pod(name: str, release: str) -> Pod:
    return from_data({"metadata": {"name": name, "namespace": NAMESPACE}, "spec": pod_spec(release)}, Pod)


def deployment(release: str) -> Deployment:
    labels = {"app": "rolled"}
    body = {
        "metadata": {"name": "rolled", "namespace": NAMESPACE},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(release)},
        },
    }
    return from_data(body, Deployment)


def claimed_pod_spec(**fields: Any) -> dict[str, Any]:
    return {**pod_spec("1", volumeMounts=[{"name": "data", "mountPath": "/data"}]), **fields}


class Bench:
    """Waits for what informers tell; each act takes its time in milliseconds."""

    def __init__(self, client: Client, pods: Informer[Pod], deployments: Informer[Deployment]) -> None:
        self._client = client
        self._pods = pods
        self._deployments = deployments
        self._changed = asyncio.Event()
        for informer in (pods, deployments):
            informer.subscribe(lambda old, new: self._changed.set())

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    def live(self, prefix: str) -> list[Pod]:
        return [
            one
            for one in self._pods.items()
            if one.metadata.name.startswith(prefix) and not one.metadata.deletion_timestamp
        ]

    def rolled(self) -> bool:
        """As `kubectl rollout status` judges it."""
        (one,) = self._deployments.items()
        status, counts = one.status, {REPLICAS}
        seen = status.observed_generation == one.metadata.generation
        return seen and counts == {status.replicas, status.updated_replicas, status.available_replicas}

    async def cleared(self) -> None:
        """Until no pod is left that is being deleted."""
        await self.until(lambda: not any(one.metadata.deletion_timestamp for one in self._pods.items()))

    async def update_by_deployment(self, number: int) -> float:
        template = {"spec": pod_spec(f"{number}")}
        began = time.perf_counter()
        wanted = await self._client.patch(
            Deployment,
            "rolled",
            NAMESPACE,
            {"spec": {"template": template}},
            patch_type="application/strategic-merge-patch+json",
        )
        version = wanted.metadata.resource_version
        await self.until(lambda: self._deployments.has_seen(version) and self.rolled())
        return 1000 * (time.perf_counter() - began)

    async def update_by_client(self, number: int) -> float:
        """Pods of the release `number` take the places of those before."""
        old, new = f"own-{number - 1}-", f"own-{number}-"
        made, deleted = 0, set[str]()
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            while sum(map(ready, self.live(new))) < REPLICAS or len(deleted) < REPLICAS:
                self._changed.clear()
                while made < REPLICAS and made + REPLICAS - len(deleted) < REPLICAS + SURGE:
                    tasks.create_task(self._client.create(pod(f"{new}{made}", f"{number}")))
                    made += 1
                left = [one for one in self.live(old) if one.metadata.name not in deleted]
                spare = sum(map(ready, self.live(new))) + len(left) - (REPLICAS - UNAVAILABLE)
                for one in left[: max(0, spare)]:
                    deleted.add(one.metadata.name)
                    tasks.create_task(self._client.delete(Pod, one.metadata.name, NAMESPACE))
                    self._changed.set()
                await self._changed.wait()
        return 1000 * (time.perf_counter() - began)

    async def claim_by_set(self, number: int) -> float:
        name, labels = f"set-{number}", {"app": f"set-{number}"}
        body = {
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "serviceName": name,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": claimed_pod_spec()},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}],
            },
        }
        began = time.perf_counter()
        await self._client.create(from_data(body, StatefulSet))
        await self.until(lambda: any(map(ready, self.live(f"{name}-0"))))
        took = 1000 * (time.perf_counter() - began)
        await self._client.delete(StatefulSet, name, NAMESPACE)
        await self.until(lambda: not self.live(f"{name}-0"))
        await self.cleared()
        await self._client.delete(PersistentVolumeClaim, f"data-{name}-0", NAMESPACE)
        return took

    async def claim_by_client(self, number: int) -> float:
        name = f"claimed-{number}"
        meta = {"name": name, "namespace": NAMESPACE}
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        began = time.perf_counter()
        await self._client.create(from_data({"metadata": meta, "spec": CLAIM}, PersistentVolumeClaim))
        spec = claimed_pod_spec(volumes=[volume])
        await self._client.create(from_data({"metadata": meta, "spec": spec}, Pod))
        await self.until(lambda: any(map(ready, self.live(name))))
        took = 1000 * (time.perf_counter() - began)
        await self._client.delete(Pod, name, NAMESPACE)
        await self.until(lambda: not self.live(name))
        await self.cleared()
        await self._client.delete(PersistentVolumeClaim, name, NAMESPACE)
        return took


async def drive(instance: Instance, rounds: int) -> dict[str, list[float]]:
    client = Client(kubeconfig.read(instance.kubeconfig).transport())
    pods, deployments = Informer(client, Pod), Informer(client, Deployment)
    samples: dict[str, list[float]] = {}
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(informer.run()) for informer in (pods, deployments)]
        await pods.wait_synced()
        await deployments.wait_synced()
        bench = Bench(client, pods, deployments)
        acts = {
            "claim of a client": bench.claim_by_client,
            "claim of a set": bench.claim_by_set,
            "update by a client": bench.update_by_client,
            "update by a Deployment": bench.update_by_deployment,
        }
        await client.create(deployment("first"))
        for one in range(REPLICAS):
            await client.create(pod(f"own--1-{one}", "first"))
        await bench.until(lambda: any(deployments.items()) and bench.rolled())
        await bench.until(lambda: sum(map(ready, bench.live("own-"))) == REPLICAS)
        for number in range(rounds + 1):
            for what, act in acts.items():
                samples.setdefault(what, []).append(await act(number))
                await bench.cleared()
        for task in running:
            task.cancel()
    await client.close()
    # What is used for the first time is warmed up by the first round.
    return {what: taken[1:] for what, taken in samples.items()}


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="podling-bench-") as name:
        archive = Path(name) / "bench.tar"
        archive.write_bytes(bench_image())
        data = Path(name) / "data"
        instance = Instance.at(data)
        up = ["up", "--detach", "--port", str(PORT)]
        costs = []
        try:
            podling(*up, directory=data)
            podling("down", directory=data)
            for option in ("--no-workloads", "--workloads"):
                podling(*up, option, directory=data)
                pid = instance.running()
                assert pid is not None
                costs.append(idle(pid))
                if option == "--no-workloads":
                    podling("down", directory=data)
            podling("images", "load", str(archive), directory=data)
            samples = uvloop.run(drive(instance, rounds))
        finally:
            podling("down", directory=data)
    (memory, cpu), (memory_with, cpu_with) = costs
    report(
        "rollouts",
        [
            Measurement(
                f"rolling update of {REPLICAS} pods",
                "ms",
                samples["update by a Deployment"],
                samples["update by a client"],
                "≤ 1.5 x",
            ),
            Measurement(
                "StatefulSet with a claim: POST to Ready",
                "ms",
                samples["claim of a set"],
                samples["claim of a client"],
                "≤ 250 ms",
            ),
            Measurement(
                "memory, idle, with controllers of workloads", "MB", [memory_with], memory, "≤ +15 MB"
            ),
            Measurement(
                "CPU, idle, with controllers of workloads", "%", [cpu_with], goal=f"{cpu:.2f} % without"
            ),
        ],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
