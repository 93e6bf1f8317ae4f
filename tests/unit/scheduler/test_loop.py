"""The scheduler on a real API server over memory storage (R-SYS-3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import Request, User
from podling.apiserver.request.response import Response, failure
from podling.client.client import Client
from podling.client.informer import Informers, until
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.rules.admission_plugins import DEFAULT_PLUGINS
from podling.model.rules.volume_binding import BIND_COMPLETED as BOUND
from podling.model.rules.volume_binding import SELECTED_NODE
from podling.model.types.core import Namespace, ServiceAccount
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.node import Node
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.pod_status import PodCondition
from podling.model.types.policy import PodDisruptionBudget
from podling.model.types.scheduling import PriorityClass
from podling.model.types.storage import StorageClass
from podling.scheduler.loop import Scheduler
from podling.storage.memory import MemoryStorage

InNoTime = Callable[[Coroutine[Any, Any, None]], None]

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"


class Clock:
    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Said:
    """What the scheduler said, and the means to wait until it says it."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []
        self._more = asyncio.Event()

    def normal(self, obj: KubeObject, reason: str, message: str, *, field_path: str = "") -> None:
        self.events.append((obj.metadata.name, reason, message))
        self._more.set()

    warning = normal

    async def until(self, name: str, reason: str) -> str:
        """The message of the first such event not asked for before."""
        async with asyncio.timeout(30):
            while True:
                for event in self.events:
                    if event[:2] == (name, reason):
                        self.events.remove(event)
                        return event[2]
                self._more.clear()
                await self._more.wait()


class Refusing:
    """The API server, but for what is `refused` (a method, or the end of a path) while `refuse` is set.
    `meanwhile` writes before the first PUT of the path it stands for is let through."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.refuse: StatusError | None = None
        self.refused = "/binding"
        self.bindings = 0
        self.meanwhile: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {}

    async def handle(self, request: Request) -> Response:
        self.bindings += request.path.endswith("/binding")
        if request.method == "PUT" and (write := self.meanwhile.pop(request.path, None)) is not None:
            await write()
        if self.refuse is not None and (
            request.method == self.refused or request.path.endswith(self.refused)
        ):
            return failure(self.refuse)
        return await self._server.handle(request)


class Cluster:
    def __init__(self, client: Client, said: Said, api: Refusing, scheduler: Scheduler) -> None:
        self.client, self.said, self.api = client, said, api
        self.scheduler = scheduler

    async def node(self, name: str, cpu: str = "2", **spec: Any) -> None:
        room = {"cpu": cpu, "memory": "4Gi", "pods": "10"}
        labels = {"kubernetes.io/hostname": name}
        body = {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": room}}
        await self.client.create(from_data(body, Node))

    async def pod(self, name: str, cpu: str = "1", labels: dict[str, str] | None = None, **spec: Any) -> Pod:
        containers = [{"name": "a", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
        metadata = {"name": name, "namespace": "ns", "labels": labels or {}}
        body = {"metadata": metadata, "spec": {"containers": containers, **spec}}
        return await self.client.create(from_data(body, Pod))

    async def placed(self, name: str) -> str:
        await self.said.until(name, "Scheduled")
        return (await self.get(name)).spec.node_name

    async def get(self, name: str) -> Pod:
        return await self.client.get(Pod, name, "ns")

    async def condition(self, name: str, type_: str = "PodScheduled") -> PodCondition | None:
        return next((c for c in (await self.get(name)).status.conditions if c.type == type_), None)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with living_cluster() as made:
        yield made


@asynccontextmanager
async def living_cluster() -> AsyncIterator[Cluster]:
    async def no_node(context: object, obj: object) -> Response:
        raise NotImplementedError

    # Nobody here would find the nodes ready.
    plugins = DEFAULT_PLUGINS - {"TaintNodesByCondition"}
    server = ApiServer.build(MemoryStorage(), KINDS, clock=Clock(), connector=no_node, plugins=plugins)
    await server.start()
    api, said = Refusing(server), Said()
    client = Client(LocalTransport(api.handle, User("root", ("system:masters",))))
    await client.create(from_data({"metadata": {"name": "ns"}}, Namespace))
    await client.create(from_data({"metadata": {"name": "default", "namespace": "ns"}}, ServiceAccount))
    for name, value in (("high", 1000), ("low", -10)):
        await client.create(from_data({"metadata": {"name": name}, "value": value}, PriorityClass))
    informers = Informers(client)
    scheduler = Scheduler(client, informers, said, Clock())  # type: ignore[arg-type]
    running = asyncio.Event()

    async def live() -> None:
        async with asyncio.TaskGroup() as tasks:
            await informers.start(tasks)
            tasks.create_task(scheduler.run())
            running.set()

    async with asyncio.TaskGroup() as tasks:
        living = tasks.create_task(live())
        await running.wait()
        yield Cluster(client, said, api, scheduler)
        living.cancel()


async def test_a_pod_gets_a_node(cluster: Cluster) -> None:
    await cluster.node("one")
    await cluster.pod("p")
    assert await cluster.said.until("p", "Scheduled") == "Successfully assigned ns/p to one"
    assert (await cluster.get("p")).spec.node_name == "one"
    condition = await cluster.condition("p")
    assert condition is not None
    assert condition.status == "True"


async def test_without_nodes_it_says_so_and_waits_for_one(cluster: Cluster) -> None:
    await cluster.pod("p")
    message = await cluster.said.until("p", "FailedScheduling")
    assert message == "no nodes available to schedule pods"
    await cluster.node("one")
    assert await cluster.placed("p") == "one"


async def test_its_work_is_counted(cluster: Cluster) -> None:
    await cluster.node("one", cpu="1")
    await cluster.pod("first")
    assert await cluster.placed("first") == "one"
    await cluster.pod("second")
    await cluster.said.until("second", "FailedScheduling")
    await cluster.pod("third", schedulingGates=[{"name": "example.com/wait"}])
    cluster.api.refuse = StatusError(500, "InternalError", "no")
    await cluster.client.delete(Pod, "first", "ns", grace_seconds=0)
    await cluster.said.until("second", "FailedScheduling")
    samples = [sample for metric in cluster.scheduler.metrics() for sample in metric.samples]
    attempts = {s.labels["result"]: s.value for s in samples if s.name == "scheduler_schedule_attempts_total"}
    assert attempts == {"scheduled": 1, "unschedulable": 1, "error": 1}
    pending = {s.labels["queue"]: s.value for s in samples if s.name == "scheduler_pending_pods"}
    assert pending["gated"] == 1


async def test_why_no_node_is_in_event_and_condition(cluster: Cluster) -> None:
    await cluster.node("small", cpu="1")
    await cluster.node("cordoned", unschedulable=True)
    await cluster.node("tainted", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    await cluster.pod("p", cpu="1500m")
    message = await cluster.said.until("p", "FailedScheduling")
    assert message == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable. "
        f"no new claims to deallocate, preemption: 0/3 nodes are available: 3 {NOT_HELPFUL}."
    )
    await cluster.node("large")
    assert await cluster.placed("p") == "large"


async def test_the_condition_of_a_pod_that_fits_nowhere(cluster: Cluster) -> None:
    await cluster.node("one")
    await cluster.pod("first", cpu="2")
    assert await cluster.placed("first") == "one"
    await cluster.pod("second", cpu="2")
    message = await cluster.said.until("second", "FailedScheduling")
    assert message == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        f"no new claims to deallocate, preemption: 0/1 nodes are available: 1 {NO_VICTIMS}."
    )
    await cluster.client.delete(Pod, "first", "ns", grace_seconds=0)
    assert await cluster.placed("second") == "one"


async def test_a_pod_waits_for_its_claim(cluster: Cluster) -> None:
    later = StorageClass(metadata=ObjectMeta(name="later"), provisioner="kubernetes.io/no-provisioner")
    await cluster.client.create(replace(later, volume_binding_mode="WaitForFirstConsumer"))
    await cluster.node("one")
    await cluster.pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    assert await cluster.said.until("p", "FailedScheduling") == (
        '0/1 nodes are available: persistentvolumeclaim "data" not found. not found'
    )
    wants = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"metadata": {"name": "data", "namespace": "ns"}, "spec": {**wants, "storageClassName": "later"}}
    await cluster.client.create(from_data(body, PersistentVolumeClaim))
    assert await cluster.said.until("p", "FailedScheduling") == (
        "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind. "
        f"no new claims to deallocate, preemption: 0/1 nodes are available: 1 {NOT_HELPFUL}."
    )
    disk = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/d"}}
    await cluster.client.create(from_data({"metadata": {"name": "disk"}, "spec": disk}, PersistentVolume))
    bound = {"metadata": {"annotations": {BOUND: "yes"}}, "spec": {"volumeName": "disk"}}
    await cluster.client.patch(PersistentVolumeClaim, "data", "ns", bound)
    assert await cluster.placed("p") == "one"


async def test_a_claim_is_told_its_node_and_the_pod_waits_for_the_volume(cluster: Cluster) -> None:
    later = StorageClass(metadata=ObjectMeta(name="later"), provisioner="a.test/b")
    await cluster.client.create(replace(later, volume_binding_mode="WaitForFirstConsumer"))
    await cluster.node("one", cpu="4")
    for name in ("data", "lost"):
        await waiting_claim(cluster, name, "later")
        await until(
            cluster.client,
            PersistentVolumeClaim,
            "ns",
            name,
            lambda one: one.metadata.annotations.get(SELECTED_NODE) == "one",
        )
    # A pod without claims need not wait for those that wait.
    await cluster.pod("other")
    assert await cluster.placed("other") == "one"
    bound = {"metadata": {"annotations": {BOUND: "yes"}}, "spec": {"volumeName": "disk"}}
    await cluster.client.patch(PersistentVolumeClaim, "data", "ns", bound)
    assert await cluster.placed("of-data") == "one"
    await cluster.client.patch(
        PersistentVolumeClaim, "lost", "ns", {"metadata": {"annotations": {SELECTED_NODE: None}}}
    )
    assert await cluster.said.until("of-lost", "FailedScheduling") == (
        'binding rejected: running PreBind plugin "VolumeBinding": binding volumes: '
        'provisioning failed for PVC "lost"'
    )


async def waiting_claim(cluster: Cluster, name: str, class_name: str) -> None:
    """And the pod that waits for it."""
    wants = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {**wants, "storageClassName": class_name}
    body = {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}
    await cluster.client.create(from_data(body, PersistentVolumeClaim))
    await cluster.pod(f"of-{name}", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])


async def test_who_wrote_to_a_claim_or_volume_meanwhile_does_not_send_the_pod_back(cluster: Cluster) -> None:
    for name, provisioner in (("made", "a.test/b"), ("there", "kubernetes.io/no-provisioner")):
        later = StorageClass(metadata=ObjectMeta(name=name), provisioner=provisioner)
        await cluster.client.create(replace(later, volume_binding_mode="WaitForFirstConsumer"))
    disk = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/d"}}
    disk["storageClassName"] = "there"
    await cluster.client.create(from_data({"metadata": {"name": "disk"}, "spec": disk}, PersistentVolume))
    free = {"status": {"phase": "Available"}}
    await cluster.client.patch(PersistentVolume, "disk", "", free, subresource="status")
    seen = {"metadata": {"annotations": {"seen": "yes"}}}
    core = "/api/v1"
    cluster.api.meanwhile = {
        f"{core}/namespaces/ns/persistentvolumeclaims/a": lambda: cluster.client.patch(
            PersistentVolumeClaim, "a", "ns", seen
        ),
        f"{core}/persistentvolumes/disk": lambda: cluster.client.patch(PersistentVolume, "disk", "", seen),
    }
    await waiting_claim(cluster, "a", "made")
    await waiting_claim(cluster, "b", "there")
    await cluster.node("one", cpu="4")
    has_both = {"seen": "yes", SELECTED_NODE: "one"}
    await until(
        cluster.client,
        PersistentVolumeClaim,
        "ns",
        "a",
        lambda one: one.metadata.annotations.items() >= has_both.items(),
    )
    await until(cluster.client, PersistentVolume, "", "disk", lambda one: one.spec.claim_ref is not None)
    volume = await cluster.client.get(PersistentVolume, "disk")
    assert volume.metadata.annotations["seen"] == "yes"
    assert volume.spec.claim_ref is not None
    assert volume.spec.claim_ref.name == "b"
    bound = {"metadata": {"annotations": {BOUND: "yes"}}, "spec": {"volumeName": "disk"}}
    for name in ("a", "b"):
        await cluster.client.patch(PersistentVolumeClaim, name, "ns", bound)
        assert await cluster.placed(f"of-{name}") == "one"
    assert not cluster.api.meanwhile
    assert not [message for _, reason, message in cluster.said.events if "binding rejected" in message]


async def test_a_claim_of_which_another_decided_meanwhile_sends_the_pod_back(cluster: Cluster) -> None:
    later = StorageClass(metadata=ObjectMeta(name="later"), provisioner="a.test/b")
    await cluster.client.create(replace(later, volume_binding_mode="WaitForFirstConsumer"))
    elsewhere = {"metadata": {"annotations": {SELECTED_NODE: "two"}}}
    cluster.api.meanwhile["/api/v1/namespaces/ns/persistentvolumeclaims/a"] = lambda: cluster.client.patch(
        PersistentVolumeClaim, "a", "ns", elsewhere
    )
    await cluster.node("one")
    await waiting_claim(cluster, "a", "later")
    told = await cluster.said.until("of-a", "FailedScheduling")
    while "binding rejected" not in told:
        told = await cluster.said.until("of-a", "FailedScheduling")
    assert "the object has been modified" in told
    claim = await cluster.client.get(PersistentVolumeClaim, "a", "ns")
    assert claim.metadata.annotations[SELECTED_NODE] == "two"


async def test_the_pod_of_a_claim_that_went_meanwhile_waits_for_another(cluster: Cluster) -> None:
    later = StorageClass(metadata=ObjectMeta(name="later"), provisioner="a.test/b")
    await cluster.client.create(replace(later, volume_binding_mode="WaitForFirstConsumer"))

    async def delete() -> None:
        kept = {"metadata": {"finalizers": None}}
        await cluster.client.patch(PersistentVolumeClaim, "a", "ns", kept)
        await cluster.client.delete(PersistentVolumeClaim, "a", "ns")

    cluster.api.meanwhile["/api/v1/namespaces/ns/persistentvolumeclaims/a"] = delete
    await cluster.node("one")
    await waiting_claim(cluster, "a", "later")
    told = await cluster.said.until("of-a", "FailedScheduling")
    while "binding rejected" not in told:
        told = await cluster.said.until("of-a", "FailedScheduling")
    assert 'persistentvolumeclaims "a" not found' in told


async def test_no_room_is_given_twice(cluster: Cluster) -> None:
    """Bindings of many pods are under way at once; each is counted from the moment it is decided."""
    for name in ("a", "b", "c"):
        await cluster.node(name)
    for number in range(6):
        await cluster.pod(f"p{number}")
    nodes = [await cluster.placed(f"p{number}") for number in range(6)]
    assert sorted(nodes) == ["a", "a", "b", "b", "c", "c"]


async def test_gates_hold_a_pod_until_they_are_gone(cluster: Cluster) -> None:
    await cluster.node("one")
    gated = await cluster.pod("gated", schedulingGates=[{"name": "example.com/wait"}])
    await cluster.pod("other")
    assert await cluster.placed("other") == "one"
    assert not (await cluster.get("gated")).spec.node_name
    gated.spec.scheduling_gates = []
    gated.metadata.resource_version = ""
    await cluster.client.update(gated)
    assert await cluster.placed("gated") == "one"


async def test_a_refused_binding_gives_the_room_back(cluster: Cluster) -> None:
    cluster.api.refuse = StatusError(500, "InternalError", "the disk is full")
    await cluster.node("one")
    await cluster.pod("p", cpu="2")
    message = await cluster.said.until("p", "FailedScheduling")
    assert message == 'binding rejected: running Bind plugin "DefaultBinder": the disk is full'
    condition = await cluster.condition("p")
    assert condition is not None
    assert condition.reason == "SchedulerError"
    cluster.api.refuse = None
    await cluster.pod("q", cpu="2")
    assert await cluster.placed("q") == "one"
    assert cluster.api.bindings == 2


async def test_pods_of_another_scheduler_are_left_alone(cluster: Cluster) -> None:
    await cluster.node("one")
    await cluster.pod("theirs", schedulerName="other")
    await cluster.pod("ours")
    await cluster.placed("ours")
    assert not (await cluster.get("theirs")).spec.node_name


async def test_a_more_important_pod_preempts(cluster: Cluster) -> None:
    """The victim is told who and why, and the preemptor is promised the node."""
    await cluster.node("one")
    await cluster.pod("victim", cpu="2", priorityClassName="low", terminationGracePeriodSeconds=600)
    await cluster.placed("victim")
    preemptor = await cluster.pod("preemptor", cpu="2", priorityClassName="high")
    message = await cluster.said.until("preemptor", "FailedScheduling")
    assert message == "0/1 nodes are available: 1 Insufficient cpu."
    said = await cluster.said.until("victim", "Preempted")
    assert said == f"Preempted by pod {preemptor.metadata.uid} on node one"
    assert (await cluster.get("preemptor")).status.nominated_node_name == "one"
    victim = await cluster.get("victim")
    assert victim.metadata.deletion_timestamp
    target = await cluster.condition("victim", "DisruptionTarget")
    assert target is not None
    assert (target.status, target.reason) == ("True", "PreemptionByScheduler")
    assert target.message == "default-scheduler: preempting to accommodate a higher priority pod"
    # What it was promised nobody less important gets meanwhile.
    await cluster.pod("other", cpu="2")
    await cluster.said.until("other", "FailedScheduling")
    await cluster.client.delete(Pod, "victim", "ns", grace_seconds=0)
    assert await cluster.placed("preemptor") == "one"
    assert not (await cluster.get("preemptor")).status.nominated_node_name


async def test_who_was_promised_a_node_gives_way_to_the_more_important(cluster: Cluster) -> None:
    await cluster.node("one")
    await cluster.pod("victim", cpu="2", priorityClassName="low", terminationGracePeriodSeconds=600)
    await cluster.placed("victim")
    await cluster.pod("middle", cpu="2")
    await cluster.said.until("victim", "Preempted")
    assert (await cluster.get("middle")).status.nominated_node_name == "one"
    await cluster.pod("first", cpu="2", priorityClassName="high")
    await until(cluster.client, Pod, "ns", "middle", lambda pod: not pod.status.nominated_node_name)
    assert (await cluster.get("first")).status.nominated_node_name == "one"
    await cluster.client.delete(Pod, "victim", "ns", grace_seconds=0)
    assert await cluster.placed("first") == "one"


async def test_who_never_preempts_says_so(cluster: Cluster) -> None:
    await cluster.client.create(
        from_data({"metadata": {"name": "polite"}, "value": 5, "preemptionPolicy": "Never"}, PriorityClass)
    )
    await cluster.node("one")
    await cluster.pod("there", cpu="2")
    await cluster.placed("there")
    await cluster.pod("p", cpu="2", priorityClassName="polite")
    message = await cluster.said.until("p", "FailedScheduling")
    assert message.endswith(" preemption: not eligible due to preemptionPolicy=Never.")


async def test_a_budget_turns_preemption_elsewhere(cluster: Cluster) -> None:
    await cluster.client.create(
        from_data(
            {
                "metadata": {"name": "b", "namespace": "ns"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"kept": ""}}},
            },
            PodDisruptionBudget,
        )
    )
    await cluster.node("one")
    await cluster.pod("kept", cpu="2", labels={"kept": ""}, priorityClassName="low")
    await cluster.placed("kept")
    await cluster.node("two")
    await cluster.pod("plain", cpu="2", priorityClassName="low")
    await cluster.placed("plain")
    await cluster.pod("p", cpu="2", priorityClassName="high")
    assert await cluster.said.until("plain", "Preempted")
    assert not (await cluster.get("kept")).metadata.deletion_timestamp


APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}


async def test_pods_that_want_to_be_apart_are(cluster: Cluster) -> None:
    for name in ("a", "b"):
        await cluster.node(name)
    pods = [f"web{number}" for number in range(3)]
    for name in pods[:2]:
        await cluster.pod(name, labels={"app": "web"}, affinity=APART)
    assert sorted([await cluster.placed(name) for name in pods[:2]]) == ["a", "b"]
    await cluster.pod(pods[2], labels={"app": "web"}, affinity=APART)
    message = await cluster.said.until(pods[2], "FailedScheduling")
    assert message.startswith("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.")
    await cluster.client.delete(Pod, "web0", "ns", grace_seconds=0)
    assert await cluster.placed(pods[2])


def test_when_victims_cannot_be_told_to_go_it_is_tried_again(in_no_time: InNoTime) -> None:
    async def story() -> None:
        async with living_cluster() as cluster:
            await cluster.node("one")
            await cluster.pod("victim", cpu="2", priorityClassName="low")
            await cluster.placed("victim")
            cluster.api.refuse, cluster.api.refused = StatusError(500, "InternalError", "no"), "DELETE"
            await cluster.pod("preemptor", cpu="2", priorityClassName="high")
            for _ in range(3):
                await cluster.said.until("preemptor", "FailedScheduling")
            cluster.api.refuse = None
            assert await cluster.said.until("victim", "Preempted")

    in_no_time(story())


def test_after_a_refused_binding_a_pod_is_tried_again(in_no_time: InNoTime) -> None:
    async def story() -> None:
        async with living_cluster() as cluster:
            cluster.api.refuse = StatusError(500, "InternalError", "the disk is full")
            await cluster.node("one")
            await cluster.pod("p")
            for _ in range(3):
                await cluster.said.until("p", "FailedScheduling")
            cluster.api.refuse = None
            assert await cluster.placed("p") == "one"

    in_no_time(story())
