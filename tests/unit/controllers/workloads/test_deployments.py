"""A Deployment rolls its pods from template to template, and says how far it is."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.workloads.claims import Owned
from podling.controllers.workloads.deployments import Deployments
from podling.controllers.workloads.replicas import SETS, Replicas
from podling.model.errors import StatusError
from podling.model.types.apps import Deployment, ReplicaSet
from podling.model.types.core import ResourceQuota
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

LABELS = {"app": "web"}
KEY = ("ns", "web")


def template(image: str = "one") -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "a", "image": image}]}}


async def begin(cluster: Cluster, replicas: int = 3, **spec: Any) -> Deployment:
    pods, sets = cluster.informers.of(Pod), cluster.informers.of(ReplicaSet)
    owned = Owned(pods)
    deployments = cluster.informers.of(Deployment)
    account, common = cluster.account, (cluster.events, cluster.clock)
    await cluster.run(
        Replicas(SETS, account("replicaset-controller"), sets, pods, owned, *common),
        Deployments(account("deployment-controller"), deployments, sets, pods, owned, *common),
    )
    body = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(), **spec}
    made = await cluster.make(Deployment, "web", spec=body)
    await cluster.settle()
    return made


async def pods_become_ready(cluster: Cluster, image: str = "") -> None:
    """All that are there, and those that are made because they are."""
    while True:
        await cluster.settle()
        since = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
        said = {"status": {"phase": "Running", "conditions": ready}}
        waiting = [
            pod
            for pod in (await cluster.client.list(Pod, "ns")).items
            if not pod.status.conditions and image in ("", pod.spec.containers[0].image)
        ]
        if not waiting:
            return
        for pod in waiting:
            await cluster.client.patch(Pod, pod.metadata.name, "ns", said, subresource="status")


async def change(cluster: Cluster, **spec: Any) -> None:
    await cluster.client.patch(Deployment, "web", "ns", {"spec": spec})
    await cluster.settle()


async def at(cluster: Cluster, seconds: float) -> None:
    cluster.clock.move(seconds)
    cluster._controllers[1].queue.add(KEY)
    await cluster.settle()


async def status(cluster: Cluster) -> tuple[int, int, int, int]:
    found = (await cluster.client.get(Deployment, "web", "ns")).status
    return found.replicas, found.updated_replicas, found.ready_replicas, found.available_replicas


async def conditions(cluster: Cluster) -> dict[str, tuple[str, str, str]]:
    found = (await cluster.client.get(Deployment, "web", "ns")).status.conditions
    return {one.type: (one.status, one.reason, one.message) for one in found}


async def sizes(cluster: Cluster) -> dict[str, int]:
    """By image."""
    sets = (await cluster.client.list(ReplicaSet, "ns")).items
    return {one.spec.template.spec.containers[0].image: one.spec.replicas or 0 for one in sets}


async def revisions(cluster: Cluster) -> dict[str, str]:
    sets = (await cluster.client.list(ReplicaSet, "ns")).items
    name = "deployment.kubernetes.io/revision"
    return {one.spec.template.spec.containers[0].image: one.metadata.annotations[name] for one in sets}


async def test_it_makes_a_set_and_says_when_it_is_available(cluster: Cluster) -> None:
    made = await begin(cluster)
    (one,) = (await cluster.client.list(ReplicaSet, "ns")).items
    hashed = one.metadata.labels["pod-template-hash"]
    assert one.metadata.name == f"web-{hashed}"
    assert one.spec.selector and one.spec.selector.match_labels == {**LABELS, "pod-template-hash": hashed}
    assert one.metadata.annotations == {
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
        "deployment.kubernetes.io/revision": "1",
    }
    assert [ref.uid for ref in one.metadata.owner_references] == [made.metadata.uid]
    assert f"ScalingReplicaSet: Scaled up replica set web-{hashed} from 0 to 3" in cluster.events.said
    assert await status(cluster) == (3, 3, 0, 0)
    assert await conditions(cluster) == {
        "Available": (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        ),
        "Progressing": ("True", "ReplicaSetUpdated", f'ReplicaSet "web-{hashed}" is progressing.'),
    }
    await pods_become_ready(cluster)
    assert await status(cluster) == (3, 3, 3, 3)
    assert await conditions(cluster) == {
        "Available": ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        "Progressing": (
            "True",
            "NewReplicaSetAvailable",
            f'ReplicaSet "web-{hashed}" has successfully progressed.',
        ),
    }


async def test_it_rolls_to_another_template_and_back(cluster: Cluster) -> None:
    await begin(cluster)
    await pods_become_ready(cluster)
    await change(cluster, template=template("two"))
    assert await sizes(cluster) == {"one": 3, "two": 1}
    await pods_become_ready(cluster)
    assert await sizes(cluster) == {"one": 0, "two": 3}
    assert await revisions(cluster) == {"one": "1", "two": "2"}
    await change(cluster, template=template("one"))
    await pods_become_ready(cluster)
    assert await sizes(cluster) == {"one": 3, "two": 0}
    assert await revisions(cluster) == {"one": "3", "two": "2"}
    deployment = await cluster.client.get(Deployment, "web", "ns")
    assert deployment.metadata.annotations == {"deployment.kubernetes.io/revision": "3"}
    sets = (await cluster.client.list(ReplicaSet, "ns")).items
    histories = [one.metadata.annotations.get("deployment.kubernetes.io/revision-history") for one in sets]
    assert sorted(map(str, histories)) == ["1", "None"]


async def test_one_that_does_not_get_on_is_late(cluster: Cluster) -> None:
    await begin(cluster, progressDeadlineSeconds=10)
    await pods_become_ready(cluster)
    await change(cluster, template=template("bad"))
    await at(cluster, 10)
    assert (await conditions(cluster))["Progressing"][1] == "ReplicaSetUpdated"
    await at(cluster, 1)
    late = (await conditions(cluster))["Progressing"]
    assert late[:2] == ("False", "ProgressDeadlineExceeded")
    assert late[2].endswith("has timed out progressing.")
    assert await sizes(cluster) == {"one": 3, "bad": 1}
    await change(cluster, template=template("one"))
    assert await sizes(cluster) == {"one": 3, "bad": 0}
    assert (await conditions(cluster))["Progressing"][1] == "NewReplicaSetAvailable"


async def test_one_that_is_paused_only_scales(cluster: Cluster) -> None:
    await begin(cluster)
    await pods_become_ready(cluster)
    await change(cluster, paused=True, template=template("two"), replicas=4)
    assert await sizes(cluster) == {"one": 4}
    paused = (await conditions(cluster))["Progressing"]
    assert paused == ("Unknown", "DeploymentPaused", "Deployment is paused")
    await change(cluster, paused=False)
    await pods_become_ready(cluster)
    assert await sizes(cluster) == {"one": 0, "two": 4}


async def test_one_that_is_scaled_while_it_rolls_keeps_the_parts(cluster: Cluster) -> None:
    await begin(cluster, 10, strategy={"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}})
    await pods_become_ready(cluster)
    await change(cluster, template=template("two"))
    assert await sizes(cluster) == {"one": 8, "two": 5}
    await change(cluster, replicas=15)
    assert await sizes(cluster) == {"one": 11, "two": 7}


async def test_recreate_waits_for_the_last_old_pod(cluster: Cluster) -> None:
    held = {**template(), "metadata": {"labels": LABELS, "finalizers": ["example.com/held"]}}
    await begin(cluster, 2, strategy={"type": "Recreate", "rollingUpdate": None}, template=held)
    await pods_become_ready(cluster)
    await change(cluster, template=template("two"))
    assert await sizes(cluster) == {"one": 0}
    for pod in (await cluster.client.list(Pod, "ns")).items:
        await cluster.client.patch(Pod, pod.metadata.name, "ns", {"metadata": {"finalizers": None}})
    await pods_become_ready(cluster)
    assert await sizes(cluster) == {"one": 0, "two": 2}
    assert await status(cluster) == (2, 2, 2, 2)


async def test_old_sets_beyond_the_limit_are_forgotten(cluster: Cluster) -> None:
    await begin(cluster, 1, revisionHistoryLimit=1)
    for image in ("two", "three", "four"):
        await change(cluster, template=template(image))
        await pods_become_ready(cluster)
    assert await sizes(cluster) == {"three": 0, "four": 1}


async def test_a_set_of_its_name_with_another_template_makes_another_name(cluster: Cluster) -> None:
    await begin(cluster, 1)
    (first,) = (await cluster.client.list(ReplicaSet, "ns")).items
    await cluster.client.patch(
        ReplicaSet, first.metadata.name, "ns", {"spec": {"template": {"spec": {"hostname": "other"}}}}
    )
    await cluster.settle()
    found = await cluster.client.get(Deployment, "web", "ns")
    assert found.status.collision_count == 1
    assert len(await cluster.names(ReplicaSet, "ns")) == 2


async def test_an_orphaned_set_is_adopted(cluster: Cluster) -> None:
    await begin(cluster)
    await pods_become_ready(cluster)
    (one,) = (await cluster.client.list(ReplicaSet, "ns")).items
    await cluster.client.patch(ReplicaSet, one.metadata.name, "ns", {"metadata": {"ownerReferences": []}})
    await cluster.settle()
    (same,) = (await cluster.client.list(ReplicaSet, "ns")).items
    assert same.metadata.uid == one.metadata.uid and len(same.metadata.owner_references) == 1


async def test_what_keeps_a_set_from_its_pods_is_said_of_the_deployment(cluster: Cluster) -> None:
    hard = {"pods": "0"}
    await cluster.make(
        ResourceQuota, "none", spec={"hard": hard}, status={"hard": hard, "used": {"pods": "0"}}
    )
    with pytest.raises(StatusError, match="exceeded quota"):
        await begin(cluster, 1)
    for _ in range(3):
        with suppress(StatusError):
            await cluster.settle()
    assert (await conditions(cluster))["ReplicaFailure"][:2] == ("True", "FailedCreate")
    assert await status(cluster) == (0, 0, 0, 0)


async def test_one_that_is_deleted_does_nothing_more(cluster: Cluster) -> None:
    await begin(cluster)
    await cluster.client.delete(Deployment, "web", "ns", propagation="Foreground")
    await cluster.client.patch(Deployment, "web", "ns", {"spec": {"replicas": 5}})
    await cluster.settle()
    assert await sizes(cluster) == {"one": 3}
