"""R-SYS-8: a controller of sets or Deployments that is killed at any write, again and again, does no harm,
and the next one gets done what it began.

A life is a controller that may write so many times and then dies: before its next write, or when that was
made and its answer is lost. After each write nothing may be gone that a rollout may not take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from podling.client.client import Client
from podling.controllers.controller import Controller
from podling.controllers.workloads.claims import Owned
from podling.controllers.workloads.daemon_sets import DaemonSets
from podling.controllers.workloads.deployments import Deployments
from podling.controllers.workloads.replicas import SETS, Replicas
from podling.controllers.workloads.stateful_sets import StatefulSets
from podling.model.types.apps import ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet
from podling.model.types.node import Node
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

LABELS = {"app": "web"}
LIVES = 200
DEATHS = [(1, True), (1, False), (2, True), (3, False)]
"""The writes of each life, and whether the next one dies unmade or with its answer."""

Check = Callable[[], Awaitable[None]]
Born = Callable[[Client], list[Controller[Any]]]


class Killed(Exception):
    """Where the process ended."""


class Dying:
    """A transport for so many writes."""

    def __init__(self, transport: Any, writes: int, check: Check, *, answers: bool) -> None:
        self._transport, self._left, self._check, self._answers = transport, writes, check, answers

    async def request(self, method: str, *rest: Any) -> Any:
        if method == "GET":
            return await self._transport.request(method, *rest)
        self._left -= 1
        if self._left < 0 and (self._answers or self._left < -1):
            raise Killed
        answer = await self._transport.request(method, *rest)
        await self._check()
        if self._left < 0:
            raise Killed
        return answer


def template(image: str) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "a", "image": image}]}}


async def pods(cluster: Cluster) -> list[Pod]:
    return (await cluster.client.list(Pod, "ns")).items


async def ready(cluster: Cluster) -> bool:
    """Whether one was not."""
    said = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    waiting = [pod for pod in await pods(cluster) if not pod.status.conditions]
    for pod in waiting:
        await cluster.client.patch(Pod, pod.metadata.name, "ns", said, subresource="status")
    return bool(waiting)


async def lived(
    cluster: Cluster, client: Client, born: Born, check: Check, writes: int, *, answers: bool
) -> None:
    """As many lives as it needs until nothing is left to do."""
    for _ in range(LIVES):
        dying: Any = Dying(client._transport, writes, check, answers=answers)
        cluster._controllers = born(Client(dying))
        try:
            await cluster.run()
        except Killed:
            continue
        finally:
            cluster.close()
        if not await ready(cluster):
            return
    raise AssertionError(f"not done after {LIVES} lives")


@pytest.mark.parametrize(("writes", "answers"), DEATHS)
@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
async def test_a_stateful_set(cluster: Cluster, policy: str, writes: int, answers: bool) -> None:
    def born(client: Client) -> list[Controller[Any]]:
        informed = cluster.informers.of(Pod)
        return [
            StatefulSets(
                client,
                cluster.informers.of(StatefulSet),
                informed,
                Owned(informed),
                cluster.informers.of(PersistentVolumeClaim),
                Owned(cluster.informers.of(ControllerRevision)),
                cluster.events,
                cluster.clock,
            )
        ]

    least = 0

    async def check() -> None:
        there = await pods(cluster)
        assert {pod.metadata.name for pod in there} <= {f"web-{number}" for number in range(4)}
        assert sum(bool(pod.status.conditions) for pod in there) >= least

    async def live() -> None:
        await lived(cluster, cluster.account("statefulset-controller"), born, check, writes, answers=answers)

    data = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    spec = {
        "replicas": 4,
        "podManagementPolicy": policy,
        "selector": {"matchLabels": LABELS},
        "template": template("one"),
        "volumeClaimTemplates": [data],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
    }
    await cluster.make(StatefulSet, "web", spec=spec)
    await live()
    claims = (await cluster.client.list(PersistentVolumeClaim, "ns")).items
    assert [claim.metadata.name for claim in claims] == [f"data-web-{number}" for number in range(4)]
    assert all(ref.kind == "StatefulSet" for claim in claims for ref in claim.metadata.owner_references)
    least = 3
    for image in ("two", "one"):
        await cluster.client.patch(StatefulSet, "web", "ns", {"spec": {"template": template(image)}})
        await live()
        assert [pod.spec.containers[0].image for pod in await pods(cluster)] == [image] * 4
    assert len(await cluster.names(ControllerRevision, "ns")) == 2
    status = (await cluster.client.get(StatefulSet, "web", "ns")).status
    assert (status.current_replicas, status.updated_replicas, status.available_replicas) == (4, 4, 4)
    least = 1
    await cluster.client.patch(StatefulSet, "web", "ns", {"spec": {"replicas": 1}})
    await live()
    assert [pod.metadata.name for pod in await pods(cluster)] == ["web-0"]


@pytest.mark.parametrize(("writes", "answers"), DEATHS)
@pytest.mark.parametrize("surge", [0, 2])
async def test_a_daemon_set(cluster: Cluster, surge: int, writes: int, answers: bool) -> None:
    for number in range(5):
        await cluster.make(Node, f"n{number}", "")
        await cluster.client.patch(Node, f"n{number}", "", {"spec": {"taints": None}})
    rolling = {"maxSurge": surge, "maxUnavailable": 0 if surge else 2}

    def born(client: Client) -> list[Controller[Any]]:
        informed, revisions = cluster.informers.of(Pod), cluster.informers.of(ControllerRevision)
        return [
            DaemonSets(
                client,
                cluster.informers.of(DaemonSet),
                cluster.informers.of(Node),
                informed,
                Owned(informed),
                revisions,
                Owned(revisions),
                cluster.events,
                cluster.clock,
            )
        ]

    least = 0

    async def check() -> None:
        there = await pods(cluster)
        assert len(there) <= 5 + surge
        assert sum(bool(pod.status.conditions) for pod in there) >= least

    async def live() -> None:
        await lived(cluster, cluster.account("daemon-set-controller"), born, check, writes, answers=answers)

    spec = {
        "selector": {"matchLabels": LABELS},
        "template": template("one"),
        "updateStrategy": {"rollingUpdate": rolling},
    }
    await cluster.make(DaemonSet, "web", spec=spec)
    await live()
    assert len(await pods(cluster)) == 5
    least = 5 if surge else 3
    for image in ("two", "one"):
        await cluster.client.patch(DaemonSet, "web", "ns", {"spec": {"template": template(image)}})
        await live()
        assert [pod.spec.containers[0].image for pod in await pods(cluster)] == [image] * 5
    assert len(await cluster.names(ControllerRevision, "ns")) == 2


@pytest.mark.parametrize(("writes", "answers"), DEATHS)
@pytest.mark.parametrize(("surge", "unavailable"), [(2, 0), (0, 2), (1, 1)])
async def test_a_deployment(
    cluster: Cluster, surge: int, unavailable: int, writes: int, answers: bool
) -> None:
    """Its controller and that of its ReplicaSets are in one process, and die together.

    As in Kubernetes, the surge limits what all ReplicaSets are to have: the new one may make its pods before
    the old one has deleted those it is to lose.
    """

    def born(client: Client) -> list[Controller[Any]]:
        informed, sets = cluster.informers.of(Pod), cluster.informers.of(ReplicaSet)
        common = (sets, informed, Owned(informed), cluster.events, cluster.clock)
        deployments = cluster.informers.of(Deployment)
        return [Replicas(SETS, client, *common), Deployments(client, deployments, *common)]

    least, most = 0, 5

    async def check() -> None:
        there = await pods(cluster)
        sets = (await cluster.client.list(ReplicaSet, "ns")).items
        assert sum(one.spec.replicas or 0 for one in sets) <= most
        assert all(number <= 5 for number in Counter(pod.spec.containers[0].image for pod in there).values())
        assert sum(bool(pod.status.conditions) for pod in there) >= least

    async def live() -> None:
        await lived(cluster, cluster.client, born, check, writes, answers=answers)

    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    spec = {
        "replicas": 5,
        "selector": {"matchLabels": LABELS},
        "template": template("one"),
        "strategy": {"rollingUpdate": rolling},
    }
    await cluster.make(Deployment, "web", spec=spec)
    await live()
    assert len(await pods(cluster)) == 5
    least, most = 5 - unavailable, 5 + surge
    for image in ("two", "one"):
        await cluster.client.patch(Deployment, "web", "ns", {"spec": {"template": template(image)}})
        await live()
        assert [pod.spec.containers[0].image for pod in await pods(cluster)] == [image] * 5
    assert len(await cluster.names(ReplicaSet, "ns")) == 2
    status = (await cluster.client.get(Deployment, "web", "ns")).status
    assert (status.replicas, status.updated_replicas, status.available_replicas) == (5, 5, 5)
