"""R-SYS-8: `podling controllers` is killed in the middle of rollouts, again and again, as a process.

Never are more than maxUnavailable pods lost or more than maxSurge too many, no index of a Job has another pod
after it has succeeded, and a StatefulSet has one pod at a time that is not ready. Pods are made ready by the
test, since nothing here is about kubelets. PODLING_KILLS says how often (docs/performance.md).
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from peer import control_plane
from podling.client import kubeconfig
from podling.client.client import Client
from podling.client.informer import Informer, Informers, until
from podling.client.workqueue import WorkQueue, work
from podling.controllers.controller import gone_is_done
from podling.model.codec.json import from_data
from podling.model.rules.status import is_condition_true
from podling.model.types.apps import Deployment, StatefulSet
from podling.model.types.batch import Job
from podling.model.types.pod import Pod

KILLS = int(os.environ.get("PODLING_KILLS", "5"))
PATIENCE = 60.0
REPLICAS, SURGE, UNAVAILABLE, INDEXES = 6, 2, 1, 8
INDEX = "batch.kubernetes.io/job-completion-index"
ROUND = "tests.podling.dev/round"
STILL_READ = ("01", "08")
"""ESTABLISHED and CLOSE_WAIT, of linux/tcp_states.h."""
CONTAINERS = [{"name": "c", "image": "i"}]
DEPLOYMENT = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": REPLICAS,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"rollingUpdate": {"maxSurge": SURGE, "maxUnavailable": UNAVAILABLE}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}},
    },
}
SET = {
    "metadata": {"name": "db", "namespace": "default"},
    "spec": {
        "replicas": 3,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": CONTAINERS}},
    },
}


class World:
    """What the API server tells of pods, and what must be so of them."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.pods = Informer(client, Pod, "default")
        self.queue: WorkQueue[tuple[str, str]] = WorkQueue()
        self.wrong: list[str] = []
        self.changes = 0
        self._changed = asyncio.Event()
        self._was_whole = self._set_was_whole = False
        self._succeeded: set[tuple[str, str]] = set()
        self.pods.subscribe(self._seen)

    async def reconcile(self, key: tuple[str, str]) -> None:
        """As a kubelet: pods are ready at once, those of Jobs have succeeded."""
        pod = self.pods.get(*key)
        if pod is None or pod.metadata.deletion_timestamp or pod.status.phase != "Pending":
            return
        is_work = "job-name" in pod.metadata.labels
        ready = [{"type": "Ready", "status": str(not is_work)}]
        status = {"phase": "Succeeded" if is_work else "Running", "conditions": ready}
        with gone_is_done():
            await self.client.patch(
                Pod, pod.metadata.name, "default", {"status": status}, subresource="status"
            )

    async def more(self, changes: int) -> None:
        """Returns after so many changes of pods."""
        wanted = self.changes + changes
        async with asyncio.timeout(PATIENCE):
            while self.changes < wanted:
                self._changed.clear()
                await self._changed.wait()

    def _seen(self, old: Pod | None, new: Pod | None) -> None:
        self.changes += 1
        self._changed.set()
        if new is not None:
            self.queue.add((new.metadata.namespace, new.metadata.name))
        self._check_job(old, new)
        web, db = self._of("web"), self._of("db")
        ready = sum(is_condition_true(pod.status.conditions, "Ready") for pod in web)
        self._was_whole |= ready == REPLICAS
        if self._was_whole and ready < REPLICAS - UNAVAILABLE:
            self.wrong.append(f"{ready} pods are ready")
        if len(web) > REPLICAS + SURGE:
            self.wrong.append(f"there are {len(web)} pods")
        waiting = len(db) - sum(is_condition_true(pod.status.conditions, "Ready") for pod in db)
        if waiting > 1:
            self.wrong.append(f"{waiting} pods of the set are not ready")
        self._set_was_whole |= len(db) == 3
        if self._set_was_whole and len(db) < 2:
            self.wrong.append(f"the set has {len(db)} pods")

    def _check_job(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or (job := new.metadata.labels.get("job-name")) is None:
            return
        key = job, new.metadata.annotations[INDEX]
        if old is None and key in self._succeeded:
            self.wrong.append(f"index {key} runs again")
        if new.status.phase == "Succeeded":
            self._succeeded.add(key)

    def _of(self, app: str) -> list[Pod]:
        pods = self.pods.items()
        return [pod for pod in pods if pod.metadata.labels.get("app") == app and not _ends(pod)]


def _ends(pod: Pod) -> bool:
    return bool(pod.metadata.deletion_timestamp)


class Rollouts:
    """Always something to roll out: what is complete gets another template, and a Job another Job. `stop()`
    lets all come to its end."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.jobs = self.rounds = 0
        self.queue: WorkQueue[tuple[type[Any], str]] = WorkQueue()
        self.informers = Informers(client)
        self._stopped = False
        for type_ in (Deployment, StatefulSet, Job):
            self.informers.of(type_, "default").subscribe(self._changed)

    async def begin(self) -> None:
        await self._client.create(from_data(DEPLOYMENT, Deployment))
        await self._client.create(from_data(SET, StatefulSet))
        await self._new_job()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            await self.informers.start(tasks)
            tasks.create_task(work(self.queue, self.reconcile, "rollouts"))

    def stop(self) -> None:
        self._stopped = True

    def _changed(self, old: Any, new: Any) -> None:
        if new is not None:
            self.queue.add((type(new), new.metadata.name))

    async def reconcile(self, key: tuple[type[Any], str]) -> None:
        type_, name = key
        if self._stopped or not is_complete(await self._client.get(type_, name, "default")):
            return
        if type_ is not Job:
            self.rounds += 1
            template = {"metadata": {"annotations": {ROUND: str(self.rounds)}}}
            await self._client.patch(type_, name, "default", {"spec": {"template": template}})
        elif name == f"work-{self.jobs}":
            await self._new_job()

    async def _new_job(self) -> None:
        self.jobs += 1
        spec = {
            "completions": INDEXES,
            "parallelism": 3,
            "completionMode": "Indexed",
            "template": {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}},
        }
        meta = {"name": f"work-{self.jobs}", "namespace": "default"}
        await self._client.create(from_data({"metadata": meta, "spec": spec}, Job))


async def test_controllers_that_are_killed_do_no_harm(tmp_path: Path) -> None:
    chance = random.Random(16)
    with control_plane.podling(tmp_path) as server:
        client = Client(kubeconfig.read(server.kubeconfig).transport())
        world, rollouts = World(client), Rollouts(client)
        command = [sys.executable, "-m", "podling", "controllers", "--secure-port=0", "--leader-elect=false"]
        command.append(f"--kubeconfig={server.kubeconfig}")
        with (tmp_path / "controllers.log").open("ab") as log:
            async with asyncio.TaskGroup() as tasks:
                following = [
                    tasks.create_task(world.pods.run()),
                    tasks.create_task(work(world.queue, world.reconcile, "kubelet")),
                    tasks.create_task(rollouts.run()),
                ]
                await world.pods.wait_synced()
                await rollouts.begin()
                for _ in range(KILLS):
                    running = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
                    try:
                        await world.more(chance.randint(1, 25))
                    finally:
                        sockets = sockets_of(running.pid)
                        running.kill()
                        await running.wait()
                    await until_heard(sockets)
                    assert world.wrong == []
                rollouts.stop()
                running = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
                try:
                    async with asyncio.timeout(PATIENCE):
                        await until(client, Deployment, "default", "web", is_complete)
                        await until(client, StatefulSet, "default", "db", is_complete)
                        await until(client, Job, "default", f"work-{rollouts.jobs}", is_complete)
                finally:
                    running.kill()
                    await running.wait()
                for task in following:
                    task.cancel()
        assert world.wrong == []
        # Kills were in the middle of rollouts, and these went on.
        assert rollouts.rounds >= KILLS // 5
        done = [(await client.get(Job, f"work-{n + 1}", "default")).status for n in range(rollouts.jobs)]
        assert [status.succeeded for status in done] == [INDEXES] * rollouts.jobs
        await client.close()


def connections() -> list[list[str]]:
    """Rows of proc(5)'s net/tcp: of each socket of IPv4 its address, whose it is connected to, its state."""
    return [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]


def sockets_of(pid: int) -> set[tuple[str, str]]:
    """Of each socket of a process its address and whose it is connected to."""
    fds = Path(f"/proc/{pid}/fd")
    with suppress(FileNotFoundError):
        inodes = {os.readlink(fd).removeprefix("socket:[").rstrip("]") for fd in fds.iterdir()}
        return {(row[1], row[2]) for row in connections() if row[9] in inodes}
    return set()


async def until_heard(sockets: set[tuple[str, str]]) -> None:
    """Returns when the server has read all that was sent from these to their end. What controllers asked for
    before they were killed may be done when others have begun, and those could not know: where there are
    several, a lease keeps them apart."""
    async with asyncio.timeout(PATIENCE):
        # The kernel tells nobody when this changes.
        while any((row[2], row[1]) in sockets and row[3] in STILL_READ for row in connections()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def is_complete(found: Any) -> bool:
    spec, status = found.spec, found.status
    if isinstance(found, Job):
        return is_condition_true(status.conditions, "Complete")
    if (status.observed_generation or 0) < found.metadata.generation:
        return False
    return [status.updated_replicas, status.ready_replicas, status.replicas] == [spec.replicas] * 3
