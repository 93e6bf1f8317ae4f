"""R-SYS-1: lightkube, whose types are made from Kubernetes' own schema, so that each answer must fit one."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import aclosing, closing
from typing import Any, TypeVar

import httpx2
import pytest
from lightkube import ApiError, AsyncClient, Client, KubeConfig, codecs
from lightkube.core.exceptions import ConditionError
from lightkube.models.coordination_v1 import LeaseSpec
from lightkube.models.core_v1 import EphemeralContainer, Event, ObjectReference
from lightkube.models.meta_v1 import DeleteOptions, LabelSelector, ObjectMeta, OwnerReference
from lightkube.models.policy_v1 import PodDisruptionBudgetSpec
from lightkube.operators import equal, exists, in_, not_exists, not_in
from lightkube.resources import coordination_v1, core_v1, policy_v1
from lightkube.resources.core_v1 import ConfigMap, Node, Pod, Secret
from lightkube.types import CascadeType, OnErrorAction, OnErrorResult, PatchType

from e2e.clients.required import required

pytestmark = pytest.mark.containerd

Manifest = dict[str, Any]
Resource = TypeVar("Resource", Pod, core_v1.PodTemplate, core_v1.Event)
PATIENCE = 60


def read(type_: type[Resource], manifest: Manifest) -> Resource:
    obj = type_.from_dict(manifest)
    assert isinstance(obj, type_)
    return obj


@pytest.fixture
def cluster(admin: str, space: str) -> Iterator[Client]:
    config = KubeConfig.from_file(admin)
    with Client(config, namespace=space, field_manager="tests", timeout=httpx2.Timeout(PATIENCE)) as client:
        yield client


@pytest.fixture
def running(cluster: Client, web: Manifest) -> str:
    """The name of a pod that is ready."""
    cluster.create(read(Pod, web))
    cluster.wait(Pod, "web", for_conditions=["Ready"])
    return "web"


def config_map(name: str = "c", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


def make(cluster: Client, *names: str, **labels: str) -> list[Secret]:
    return [cluster.create(Secret(metadata=ObjectMeta(name=name, labels=labels))) for name in names]


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The Status of an answer that the client raises."""
    with pytest.raises(ApiError) as raised:
        call(*arguments, **options)
    return raised.value.status


def test_objects_are_made_read_replaced_and_deleted(cluster: Client) -> None:
    made = cluster.create(config_map(k="v"))
    assert made.metadata and made.metadata.uid and made.metadata.managedFields
    made.data = {"k": "w"}
    replaced = cluster.replace(made)
    assert cluster.get(ConfigMap, "c").data == {"k": "w"}
    assert int(required(required(replaced.metadata).resourceVersion)) > int(
        required(made.metadata.resourceVersion)
    )
    assert refusal(cluster.replace, made).reason == "Conflict"
    cluster.delete(ConfigMap, "c")
    assert refusal(cluster.get, ConfigMap, "c").code == 404


@pytest.mark.parametrize(
    "manifest",
    [
        {"kind": "Service", "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}},
        {"kind": "ServiceAccount", "imagePullSecrets": [{"name": "s"}]},
        {"kind": "LimitRange", "spec": {"limits": [{"type": "Pod", "max": {"cpu": "2"}}]}},
        {"kind": "PodTemplate", "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}},
        {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "spec": {"leaseDurationSeconds": 9}},
        {
            "kind": "EndpointSlice",
            "apiVersion": "discovery.k8s.io/v1",
            "addressType": "IPv4",
            "endpoints": [],
        },
        {
            "kind": "Role",
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        },
    ],
    ids=lambda manifest: manifest["kind"],
)
def test_kinds_from_yaml_fit_their_types(cluster: Client, manifest: Manifest) -> None:
    manifest = {"apiVersion": "v1", **manifest, "metadata": {"name": "one"}}
    (obj,) = codecs.load_all_yaml(required(codecs.dump_all_yaml([codecs.from_dict(manifest)])))
    assert required(cluster.apply(obj).metadata).name == "one"
    (listed,) = [one for one in cluster.list(type(obj)) if required(one.metadata).name == "one"]
    assert type(listed) is type(obj)
    patched = cluster.patch(
        type(obj), "one", {"metadata": {"labels": {"x": "1"}}}, patch_type=PatchType.MERGE
    )
    assert required(patched.metadata).labels == {"x": "1"}
    cluster.delete(type(obj), "one")


def test_patches_of_every_type(cluster: Client) -> None:
    cluster.create(config_map(k="v"))
    cluster.patch(ConfigMap, "c", {"data": {"s": "1"}})
    cluster.patch(ConfigMap, "c", {"data": {"k": None}}, patch_type=PatchType.MERGE)
    add = [{"op": "add", "path": "/data/j", "value": "2"}, {"op": "test", "path": "/data/s", "value": "1"}]
    cluster.patch(ConfigMap, "c", add, patch_type=PatchType.JSON)
    assert cluster.get(ConfigMap, "c").data == {"s": "1", "j": "2"}
    refused = refusal(cluster.patch, ConfigMap, "c", [{"op": "test", "path": "/data/s", "value": "9"}],
                      patch_type=PatchType.JSON)  # fmt: skip
    assert (refused.code, refused.reason) == (422, "Invalid")


def test_apply_conflicts_are_told_and_forced(cluster: Client) -> None:
    def applied(value: str) -> ConfigMap:
        return ConfigMap(apiVersion="v1", kind="ConfigMap", metadata=ObjectMeta(name="c"), data={"k": value})

    cluster.apply(applied("1"))
    refused = refusal(cluster.apply, applied("2"), field_manager="other")
    assert (refused.code, refused.details.causes[0].reason) == (409, "FieldManagerConflict")
    assert cluster.apply(applied("2"), field_manager="other", force=True).data == {"k": "2"}
    assert [
        entry.manager for entry in required(required(cluster.get(ConfigMap, "c").metadata).managedFields)
    ] == ["other"]


def test_strategic_merges_by_name_and_apply_leaves_others_alone(cluster: Client) -> None:
    template = {"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}}
    cluster.create(read(core_v1.PodTemplate, {"metadata": {"name": "t"}, "template": template}))
    change = {"template": {"spec": {"containers": [{"name": "b", "image": "z"}]}}}
    patched = cluster.patch(core_v1.PodTemplate, "t", change)
    assert [(c.name, c.image) for c in required(required(patched.template).spec).containers] == [
        ("a", "x"),
        ("b", "z"),
    ]
    remove = {"template": {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}}
    patched = cluster.patch(core_v1.PodTemplate, "t", remove)
    assert [c.name for c in required(required(patched.template).spec).containers] == ["b"]


def test_dry_runs_keep_nothing(cluster: Client) -> None:
    assert required(cluster.create(config_map(), dry_run=True).metadata).uid
    assert refusal(cluster.get, ConfigMap, "c").code == 404
    cluster.create(config_map(k="v"))
    assert cluster.patch(ConfigMap, "c", {"data": {"k": "w"}}, dry_run=True).data == {"k": "w"}
    cluster.delete(ConfigMap, "c", dry_run=True)
    assert cluster.get(ConfigMap, "c").data == {"k": "v"}


def test_lists_in_chunks(cluster: Client) -> None:
    names = [f"s{number:02}" for number in range(25)]
    make(cluster, *names)
    listed = cluster.list(Secret, chunk_size=7)
    assert [required(secret.metadata).name for secret in listed] == names
    assert int(listed.resourceVersion) >= 1


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ({"tier": "front"}, "ab"),
        ({"tier": in_(["front", "back"]), "app": exists()}, "a"),
        ({"tier": not_in(["front"])}, "c"),
        ({"app": not_exists()}, "bc"),
        ({"app": equal("x")}, "a"),
    ],
    ids=["equal", "in", "not in", "absent", "named"],
)
def test_selectors(cluster: Client, labels: dict[str, Any], found: str) -> None:
    make(cluster, "a", tier="front", app="x")
    make(cluster, "b", tier="front")
    make(cluster, "c", tier="back")
    selected = cluster.list(Secret, labels=labels)
    assert "".join(required(required(secret.metadata).name) for secret in selected) == found


def test_a_collection_is_deleted(cluster: Client) -> None:
    make(cluster, "a", "b")
    cluster.deletecollection(Secret)
    assert list(cluster.list(Secret)) == []


@pytest.mark.parametrize("policy", [CascadeType.FOREGROUND, CascadeType.ORPHAN], ids=lambda p: p.value)
def test_dependents_go_or_stay(cluster: Client, policy: CascadeType) -> None:
    owner = cluster.create(config_map("owner"))
    reference = OwnerReference(
        apiVersion="v1",
        kind="ConfigMap",
        name="owner",
        uid=required(required(owner.metadata).uid),
        blockOwnerDeletion=True,
    )
    child = cluster.create(Secret(metadata=ObjectMeta(name="child", ownerReferences=[reference])))
    cluster.delete(ConfigMap, "owner", cascade=policy)
    events = cluster.watch(
        Secret, resource_version=required(child.metadata).resourceVersion, server_timeout=PATIENCE
    )
    assert isinstance(events, Generator)
    with closing(events):
        type_, left = next(events)
    assert type_ == ("DELETED" if policy is CascadeType.FOREGROUND else "MODIFIED")
    assert bool(required(left.metadata).ownerReferences) == (policy is CascadeType.FOREGROUND)


def test_a_watch_resumes_from_a_version(cluster: Client) -> None:
    (first,) = make(cluster, "a")
    version = required(first.metadata).resourceVersion
    make(cluster, "b")
    cluster.delete(Secret, "a")
    events = cluster.watch(Secret, resource_version=version, server_timeout=PATIENCE)
    assert isinstance(events, Generator)
    with closing(events):
        told = [(type_, required(secret.metadata).name) for type_, secret in itertools.islice(events, 2)]
    assert told == [("ADDED", "b"), ("DELETED", "a")]


def test_a_watch_of_what_is_forgotten_begins_anew_when_told_to(cluster: Client, forgotten: str) -> None:
    make(cluster, "a")
    errors: list[Any] = []

    def begin_anew(error: Exception, count: int) -> OnErrorResult:
        errors.append(error)
        return OnErrorResult(OnErrorAction.STOP)

    events = cluster.watch(Secret, resource_version=forgotten, on_error=begin_anew)
    assert list(events) == []
    (error,) = errors
    assert (error.status.code, error.status.reason) == (410, "Expired")


async def test_many_watch_at_once(cluster: Client, admin: str, space: str) -> None:
    """Twenty watchers of one collection, each of which hears all of it in order."""
    names = [f"s{number}" for number in range(10)]
    (first,) = make(cluster, "first")
    version = required(first.metadata).resourceVersion
    client = AsyncClient(KubeConfig.from_file(admin), namespace=space)

    async def listen() -> list[str]:
        events = client.watch(Secret, resource_version=version, server_timeout=PATIENCE)
        assert isinstance(events, AsyncGenerator)
        async with aclosing(events):
            return [required((await anext(events))[1].metadata.name) for _ in names]

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        heard = [group.create_task(listen()) for _ in range(20)]
        await asyncio.to_thread(make, cluster, *names)
    await client.close()
    assert [task.result() for task in heard] == [names] * 20


def test_a_lease_that_was_let_go_is_taken_by_one(cluster: Client) -> None:
    """What a leader election does: of two who write what they read, one is told of the other."""
    lease = coordination_v1.Lease(metadata=ObjectMeta(name="leader"), spec=LeaseSpec(holderIdentity=""))
    cluster.create(lease)
    ann, bob = cluster.get(coordination_v1.Lease, "leader"), cluster.get(coordination_v1.Lease, "leader")
    required(ann.spec).holderIdentity, required(bob.spec).holderIdentity = "ann", "bob"
    cluster.replace(ann)
    assert refusal(cluster.replace, bob).reason == "Conflict"
    assert required(cluster.get(coordination_v1.Lease, "leader").spec).holderIdentity == "ann"


def test_a_pod_runs_and_speaks(cluster: Client, running: str) -> None:
    pod = cluster.get(Pod, running)
    assert (required(pod.status).phase, required(required(pod.status).containerStatuses)[0].ready) == (
        "Running",
        True,
    )
    assert required(pod.status).podIP in [ip.ip for ip in required(required(pod.status).podIPs)]
    done = cluster.exec(running, command=["sh", "-c", "cat; echo err >&2; exit 3"], stdin="in\n",
                        stdout=True, stderr=True)  # fmt: skip
    assert (done.stdout, done.stderr, done.exit_code) == ("in\n", "err\n", 3)


def test_logs(cluster: Client, make_pod: Callable[..., Manifest]) -> None:
    cluster.create(read(Pod, make_pod("talk", "seq 3; sleep 1000 & wait")))
    cluster.wait(Pod, "talk", for_conditions=["Ready"])
    assert list(itertools.islice(cluster.log("talk", follow=True), 3)) == ["1\n", "2\n", "3\n"]
    assert list(cluster.log("talk", tail_lines=1, newlines=False)) == ["3"]
    assert refusal(cluster.log, "talk", container="none").code == 400


def test_an_ephemeral_container(cluster: Client, running: str) -> None:
    """R-EPH-1"""
    pod = cluster.get(core_v1.PodEphemeralcontainers, running)
    required(pod.spec).ephemeralContainers = [
        EphemeralContainer(name="debug", image="podling.test/busybox:1", command=["echo", "looked"])
    ]
    cluster.replace(pod, running)
    for _, seen in cluster.watch(Pod, fields={"metadata.name": running}, server_timeout=PATIENCE):
        statuses = required(seen.status).ephemeralContainerStatuses or []
        if any(required(status.state).terminated for status in statuses):
            break
    assert list(cluster.log(running, container="debug")) == ["looked\n"]


def test_a_failed_wait_says_why(cluster: Client, make_pod: Callable[..., Manifest]) -> None:
    cluster.create(read(Pod, make_pod("done", "true", restartPolicy="Never")))
    with pytest.raises(ConditionError, match="pods/done"):
        cluster.wait(Pod, "done", for_conditions=["Disrupted"], raise_for_conditions=["Initialized"])


def test_an_eviction(cluster: Client, running: str) -> None:
    select = LabelSelector(matchLabels={"app": "web"})
    spec = PodDisruptionBudgetSpec(minAvailable=1, selector=select)
    cluster.create(policy_v1.PodDisruptionBudget(metadata=ObjectMeta(name="b"), spec=spec))
    for _, budget in cluster.watch(policy_v1.PodDisruptionBudget, server_timeout=PATIENCE):
        if budget.status and budget.status.currentHealthy == 1:
            break
    eviction = core_v1.PodEviction(
        metadata=ObjectMeta(name=running), deleteOptions=DeleteOptions(gracePeriodSeconds=1)
    )
    assert refusal(cluster.create, eviction, running).code == 429
    cluster.delete(policy_v1.PodDisruptionBudget, "b")
    cluster.create(eviction, running)
    for type_, _ in cluster.watch(Pod, server_timeout=PATIENCE):
        if type_ == "DELETED":
            break


def test_events_are_written_and_selected(cluster: Client, space: str) -> None:
    about = ObjectReference(kind="Pod", name="web", namespace=space)
    for reason in ("Tested", "Ignored"):
        event = Event(
            metadata=ObjectMeta(generateName="e-"), involvedObject=about, reason=reason, type="Normal"
        )
        cluster.create(read(core_v1.Event, event.to_dict()))
    (found,) = cluster.list(core_v1.Event, fields={"reason": "Tested", "involvedObject.name": "web"})
    assert found.reason == "Tested"


def test_a_node_has_what_its_type_says(cluster: Client) -> None:
    (node,) = cluster.list(Node)
    assert required(required(node.status).nodeInfo).kubeletVersion.startswith("v1.36")
    assert {"cpu", "memory", "pods"} <= required(required(node.status).allocatable).keys()
    assert any(c.type == "Ready" and c.status == "True" for c in required(required(node.status).conditions))
