"""A StatefulSet makes its pods in their order, with their names and claims, and rolls them one by one."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from podling.client.client import Client
from podling.controllers.workloads.claims import Owned
from podling.controllers.workloads.stateful_sets import StatefulSets
from podling.model.errors import StatusError
from podling.model.types.apps import ControllerRevision, StatefulSet
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

LABELS = {"app": "web"}
DATA = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def template(image: str = "one") -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "a", "image": image}]}}


def controller(cluster: Cluster) -> StatefulSets:
    pods = cluster.informers.of(Pod)
    return StatefulSets(
        cluster.account("statefulset-controller"),
        cluster.informers.of(StatefulSet),
        pods,
        Owned(pods),
        cluster.informers.of(PersistentVolumeClaim),
        Owned(cluster.informers.of(ControllerRevision)),
        cluster.events,
        cluster.clock,
    )


async def begin(cluster: Cluster, replicas: int = 3, **spec: Any) -> StatefulSet:
    await cluster.run(controller(cluster))
    body = {
        "replicas": replicas,
        "selector": {"matchLabels": LABELS},
        "serviceName": "web",
        "template": template(),
        **spec,
    }
    made = await cluster.make(StatefulSet, "web", spec=body)
    await cluster.settle()
    return made


async def ready(cluster: Cluster, *names: str) -> None:
    since = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    for name in names:
        said = {"status": {"phase": "Running", "conditions": [condition]}}
        await cluster.client.patch(Pod, name, "ns", said, subresource="status")
        await cluster.settle()


async def change(cluster: Cluster, **spec: Any) -> None:
    await cluster.client.patch(StatefulSet, "web", "ns", {"spec": spec})
    await cluster.settle()


async def pods(cluster: Cluster) -> dict[str, str]:
    """The image of each."""
    found = (await cluster.client.list(Pod, "ns")).items
    return {pod.metadata.name: pod.spec.containers[0].image for pod in found}


async def the_set(cluster: Cluster) -> StatefulSet:
    return await cluster.client.get(StatefulSet, "web", "ns")


async def test_pods_come_in_their_order_with_their_names(cluster: Cluster) -> None:
    made = await begin(cluster)
    assert list(await pods(cluster)) == ["web-0"]
    pod = await cluster.client.get(Pod, "web-0", "ns")
    status = (await the_set(cluster)).status
    assert pod.metadata.generate_name == "web-"
    assert pod.metadata.labels == {
        **LABELS,
        "statefulset.kubernetes.io/pod-name": "web-0",
        "apps.kubernetes.io/pod-index": "0",
        "controller-revision-hash": status.update_revision,
    }
    assert (pod.spec.hostname, pod.spec.subdomain) == ("web-0", "web")
    assert [ref.uid for ref in pod.metadata.owner_references] == [made.metadata.uid]
    await ready(cluster, "web-0")
    assert list(await pods(cluster)) == ["web-0", "web-1"]
    await ready(cluster, "web-1", "web-2")
    status = (await the_set(cluster)).status
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (3, 3, 3)
    assert (status.current_replicas, status.updated_replicas) == (3, 3)
    assert status.current_revision == status.update_revision
    assert status.collision_count == 0
    assert cluster.events.said == [
        f"SuccessfulCreate: Create Pod web-{n} in StatefulSet web successful" for n in range(3)
    ]


async def test_parallel_ones_come_and_go_at_once(cluster: Cluster) -> None:
    await begin(cluster, podManagementPolicy="Parallel", ordinals={"start": 5})
    assert list(await pods(cluster)) == ["web-5", "web-6", "web-7"]
    await change(cluster, replicas=1)
    assert list(await pods(cluster)) == ["web-5"]


async def test_the_highest_goes_first(cluster: Cluster) -> None:
    await begin(cluster)
    await ready(cluster, "web-0", "web-1", "web-2")
    cluster.events.said.clear()
    await change(cluster, replicas=0)
    assert cluster.events.said == [
        f"SuccessfulDelete: Delete Pod web-{n} in StatefulSet web successful" for n in (2, 1, 0)
    ]


async def test_it_rolls_from_the_highest_down_to_the_partition_and_back(cluster: Cluster) -> None:
    await begin(cluster)
    await ready(cluster, "web-0", "web-1", "web-2")
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    await change(cluster, template=template("two"), updateStrategy=rolling)
    assert await pods(cluster) == {"web-0": "one", "web-1": "one", "web-2": "two"}
    await ready(cluster, "web-2", "web-1")
    assert await pods(cluster) == {"web-0": "one", "web-1": "two", "web-2": "two"}
    status = (await the_set(cluster)).status
    assert (status.current_replicas, status.updated_replicas) == (1, 2)
    assert status.current_revision != status.update_revision
    # One below the partition that is lost comes back as it was.
    await cluster.client.delete(Pod, "web-0", "ns")
    await cluster.settle()
    assert (await pods(cluster))["web-0"] == "one"
    await ready(cluster, "web-0")
    await change(cluster, template=template("one"))
    await ready(cluster, "web-2", "web-1")
    assert set((await pods(cluster)).values()) == {"one"}
    revisions = (await cluster.client.list(ControllerRevision, "ns")).items
    assert sorted(one.revision for one in revisions) == [2, 3]
    assert status.current_revision == (await the_set(cluster)).status.update_revision


async def test_a_revision_has_a_patch_that_puts_its_template_back(cluster: Cluster) -> None:
    await begin(cluster, 1)
    (one,) = (await cluster.client.list(ControllerRevision, "ns")).items
    assert one.data["spec"]["template"]["$patch"] == "replace"
    assert one.metadata.labels.keys() == {"app", "controller.kubernetes.io/hash"}
    await change(cluster, template=template("two"))
    await cluster.client.patch(
        StatefulSet,
        "web",
        "ns",
        one.data,
        patch_type="application/strategic-merge-patch+json",
    )
    await cluster.settle()
    assert (await the_set(cluster)).spec.template.spec.containers[0].image == "one"
    assert (await the_set(cluster)).status.update_revision == one.metadata.name


async def test_old_revisions_beyond_the_limit_are_forgotten(cluster: Cluster) -> None:
    await begin(cluster, 0, revisionHistoryLimit=1)
    for image in ("two", "three", "four"):
        await change(cluster, template=template(image))
    revisions = (await cluster.client.list(ControllerRevision, "ns")).items
    assert sorted(one.revision for one in revisions) == [3, 4]


async def test_one_that_ended_is_made_again(cluster: Cluster) -> None:
    await begin(cluster, 1)
    first = await cluster.client.get(Pod, "web-0", "ns")
    await cluster.client.patch(Pod, "web-0", "ns", {"status": {"phase": "Failed"}}, subresource="status")
    await cluster.settle()
    again = await cluster.client.get(Pod, "web-0", "ns")
    assert again.metadata.uid != first.metadata.uid


async def test_the_next_waits_until_one_is_available(cluster: Cluster) -> None:
    await begin(cluster, 2, minReadySeconds=10)
    await ready(cluster, "web-0")
    assert list(await pods(cluster)) == ["web-0"]
    cluster.clock.move(10)
    await cluster.reconcile(("ns", "web"))
    assert list(await pods(cluster)) == ["web-0", "web-1"]
    assert (await the_set(cluster)).status.available_replicas == 1


async def test_claims_are_made_and_stay(cluster: Cluster) -> None:
    await begin(cluster, 1, volumeClaimTemplates=[DATA])
    (claim,) = (await cluster.client.list(PersistentVolumeClaim, "ns")).items
    assert (claim.metadata.name, claim.metadata.labels) == ("data-web-0", LABELS)
    pod = await cluster.client.get(Pod, "web-0", "ns")
    source = pod.spec.volumes[0].persistent_volume_claim
    assert pod.spec.volumes[0].name == "data" and source and source.claim_name == "data-web-0"
    assert cluster.events.said == [
        "SuccessfulCreate: Create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "SuccessfulCreate: Create Pod web-0 in StatefulSet web successful",
    ]
    await ready(cluster, "web-0")
    await change(cluster, replicas=0)
    assert await cluster.names(PersistentVolumeClaim, "ns") == ["data-web-0"]
    assert not claim.metadata.owner_references


@pytest.mark.parametrize(
    ("deleted", "scaled", "before", "after"),
    [
        ("Delete", "Retain", ["StatefulSet"], ["StatefulSet"]),
        ("Retain", "Delete", [], ["Pod"]),
        ("Delete", "Delete", ["StatefulSet"], ["Pod"]),
    ],
)
async def test_claims_go_with_whom_the_policy_says(
    cluster: Cluster, deleted: str, scaled: str, before: list[str], after: list[str]
) -> None:
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    await begin(cluster, 1, volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=policy)
    await ready(cluster, "web-0")

    async def owners() -> list[str]:
        (claim,) = (await cluster.client.list(PersistentVolumeClaim, "ns")).items
        assert all(ref.controller for ref in claim.metadata.owner_references)
        return [ref.kind for ref in claim.metadata.owner_references]

    assert await owners() == before
    await cluster.client.patch(Pod, "web-0", "ns", {"metadata": {"finalizers": ["example.com/held"]}})
    await change(cluster, replicas=0)
    assert await owners() == after


async def test_a_claim_that_another_wrote_meanwhile_is_told_of(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    await begin(cluster, 1, volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=kept)
    await ready(cluster, "web-0")
    update = Client.update

    async def behind(client: Client, obj: Any, **how: Any) -> Any:
        if isinstance(obj, PersistentVolumeClaim):
            monkeypatch.undo()
            labels = {"metadata": {"labels": {"a": "b"}}}
            await cluster.client.patch(PersistentVolumeClaim, obj.metadata.name, "ns", labels)
        return await update(client, obj, **how)

    monkeypatch.setattr(Client, "update", behind)
    await change(cluster, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"})
    (said,) = [one for one in cluster.events.said if one.startswith("FailedUpdate")]
    assert said.startswith(
        "FailedUpdate: Update Pod web-0 in StatefulSet web failed error: could not update claim data-web-0 "
        "for delete policy ownerRefs: Operation cannot be fulfilled on persistentvolumeclaims"
    )
    (claim,) = (await cluster.client.list(PersistentVolumeClaim, "ns")).items
    assert [ref.kind for ref in claim.metadata.owner_references] == ["StatefulSet"]


async def test_only_pods_of_its_names_are_adopted(cluster: Cluster) -> None:
    for name in ("web-0", "web-x", "other-1"):
        await cluster.pod(name, metadata={"labels": LABELS})
    made = await begin(cluster, 1)
    owners = {
        pod.metadata.name: [ref.uid for ref in pod.metadata.owner_references]
        for pod in (await cluster.client.list(Pod, "ns")).items
    }
    assert owners == {"web-0": [made.metadata.uid], "web-x": [], "other-1": []}


async def test_a_key_that_comes_back_before_the_informer_does_nothing_twice(cluster: Cluster) -> None:
    one = controller(cluster)
    await cluster.run(one)
    body = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template()}
    await cluster.make(StatefulSet, "web", spec={**body, "podManagementPolicy": "Parallel"})
    await cluster.see()
    for _ in range(3):
        with suppress(StatusError):
            await one.reconcile(("ns", "web"))
    await cluster.settle()
    assert len(cluster.events.said) == 2
