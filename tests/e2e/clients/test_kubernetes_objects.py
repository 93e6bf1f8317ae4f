"""R-SYS-1: the official Python client makes, reads, changes, selects and deletes objects of many kinds."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, utils, watch
from kubernetes.client import ApiException
from kubernetes.dynamic import DynamicClient

from e2e.clients.required import required

pytestmark = pytest.mark.containerd

Manifest = dict[str, Any]
CONFIG_MAP = {"metadata": {"name": "c", "labels": {"app": "a"}}, "data": {"k": "v"}}


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


def refused(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[int, dict[str, Any]]:
    """The code and the Status of an answer that the client raises."""
    with pytest.raises(ApiException) as raised:
        call(*arguments, **options)
    status = json.loads(required(raised.value.body))
    assert status["code"] == raised.value.status and status["status"] == "Failure"
    return raised.value.status, status


RBAC = "rbac.authorization.k8s.io"
KINDS: list[tuple[str, str, Manifest]] = [
    ("v1", "ConfigMap", {"data": {"k": "v"}}),
    ("v1", "Secret", {"stringData": {"k": "v"}}),
    ("v1", "ServiceAccount", {}),
    ("v1", "Service", {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}),
    ("v1", "Endpoints", {"subsets": [{"addresses": [{"ip": "10.0.0.9"}], "ports": [{"port": 80}]}]}),
    ("v1", "PodTemplate", {"template": {"spec": {"containers": [{"name": "a", "image": "i"}]}}}),
    ("v1", "LimitRange", {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}),
    ("v1", "ResourceQuota", {"spec": {"hard": {"configmaps": "100"}}}),
    ("coordination.k8s.io/v1", "Lease", {"spec": {"holderIdentity": "me"}}),
    ("policy/v1", "PodDisruptionBudget", {"spec": {"minAvailable": "50%", "selector": {}}}),
    (f"{RBAC}/v1", "Role", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    (f"{RBAC}/v1", "RoleBinding", {"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "x"}}),
    (
        "discovery.k8s.io/v1",
        "EndpointSlice",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.9"]}]},
    ),
]


@pytest.mark.parametrize(("version", "kind", "body"), KINDS, ids=[kind for _, kind, _ in KINDS])
def test_every_kind_by_the_dynamic_client(
    api: client.ApiClient, space: str, version: str, kind: str, body: Manifest
) -> None:
    resource = DynamicClient(api).resources.get(api_version=version, kind=kind)
    manifest = {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "one", "labels": {"t": "1"}},
        **body,
    }
    made = resource.create(body=manifest, namespace=space)
    assert made.metadata.uid and made.kind == kind
    patched = resource.patch(
        body={"metadata": {"annotations": {"seen": "yes"}}},
        name="one",
        namespace=space,
        content_type="application/merge-patch+json",
    )
    assert patched.metadata.annotations.seen == "yes"
    patched.metadata.labels.t = "2"
    resource.replace(body=patched.to_dict(), namespace=space)
    assert [item.metadata.name for item in resource.get(namespace=space, label_selector="t=2").items] == [
        "one"
    ]
    applied = resource.server_side_apply(
        body={"apiVersion": version, "kind": kind, "metadata": {"name": "one", "labels": {"by": "apply"}}},
        namespace=space,
        field_manager="tests",
    )
    assert (applied.metadata.labels.by, applied.metadata.labels.t) == ("apply", "2")
    resource.delete(name="one", namespace=space)
    assert not [item for item in resource.get(namespace=space).items if item.metadata.name == "one"]


def test_cluster_scoped_kinds(api: client.ApiClient, space: str) -> None:
    rbac, scheduling, node = (
        client.RbacAuthorizationV1Api(api),
        client.SchedulingV1Api(api),
        client.NodeV1Api(api),
    )
    meta = client.V1ObjectMeta(name=space)
    rule = client.V1PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"])
    role = rbac.create_cluster_role(client.V1ClusterRole(metadata=meta, rules=[rule]))
    assert required(role.rules)[0].resources == ["pods"]
    important = scheduling.create_priority_class(client.V1PriorityClass(metadata=meta, value=7))
    assert important.preemption_policy == "PreemptLowerPriority"
    runtime = node.create_runtime_class(client.V1RuntimeClass(metadata=meta, handler="runc"))
    assert runtime.handler == "runc"
    rbac.delete_cluster_role(space)
    scheduling.delete_priority_class(space)
    deleted: Any = node.delete_runtime_class(space)
    assert deleted["status"] == "Success"


def test_objects_from_yaml_of_several_documents(api: client.ApiClient, space: str, tmp_path: Path) -> None:
    manifest = tmp_path / "all.yaml"
    manifest.write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
        "---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n"
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: c}\n"
    )
    made = utils.create_from_yaml(api, str(manifest), namespace=space)
    assert [obj.metadata.name for objects in made for obj in objects] == ["a", "b", "c"]
    with pytest.raises(utils.FailToCreateError) as raised:
        utils.create_from_yaml(api, str(manifest), namespace=space)
    assert {error.reason for error in raised.value.api_exceptions} == {"Conflict"}


def test_generated_names_differ(core: client.CoreV1Api, space: str) -> None:
    named = [core.create_namespaced_secret(space, {"metadata": {"generateName": "s-"}}) for _ in range(3)]  # type: ignore[arg-type]
    names = {required(required(secret.metadata).name) for secret in named}
    assert len(names) == 3 and all(name.startswith("s-") and len(name) == 7 for name in names)


def test_pages_of_a_list_show_one_state(core: client.CoreV1Api, space: str) -> None:
    for number in range(7):
        core.create_namespaced_secret(space, {"metadata": {"name": f"s{number}"}})  # type: ignore[arg-type]
    page = core.list_namespaced_secret(space, limit=3)
    names, remaining = (
        [required(item.metadata).name for item in page.items],
        [required(page.metadata).remaining_item_count],
    )
    core.delete_namespaced_secret("s5", space)
    while required(page.metadata)._continue:
        page = core.list_namespaced_secret(space, limit=3, _continue=required(page.metadata)._continue)
        names += [required(item.metadata).name for item in page.items]
        remaining.append(required(page.metadata).remaining_item_count)
    assert names == [f"s{number}" for number in range(7)] and remaining == [4, 1, None]
    assert len(core.list_namespaced_secret(space).items) == 6


def test_a_list_of_a_version(core: client.CoreV1Api, space: str) -> None:
    core.create_namespaced_config_map(space, CONFIG_MAP)  # type: ignore[arg-type]
    then = required(core.list_namespaced_config_map(space).metadata).resource_version
    core.delete_namespaced_config_map("c", space)
    exact = core.list_namespaced_config_map(
        space, resource_version=then, resource_version_match="Exact", limit=500
    )
    assert (
        "c" in [required(item.metadata).name for item in exact.items]
        and required(exact.metadata).resource_version == then
    )
    code, status = refused(core.list_namespaced_config_map, space, resource_version_match="Exact")
    assert (code, status["details"]["causes"][0]["field"]) == (422, "resourceVersionMatch")


@pytest.mark.parametrize(
    ("selectors", "found"),
    [
        ({"label_selector": "tier=front"}, "ab"),
        ({"label_selector": "tier!=front"}, "c"),
        ({"label_selector": "tier in (front,back),app"}, "a"),
        ({"label_selector": "!app"}, "bc"),
        ({"label_selector": "tier notin (front)"}, "c"),
        ({"field_selector": "metadata.name=b"}, "b"),
        ({"field_selector": "type!=Opaque"}, "c"),
        ({"field_selector": "type=Opaque", "label_selector": "app=x"}, "a"),
    ],
)
def test_selectors(core: client.CoreV1Api, space: str, selectors: dict[str, Any], found: str) -> None:
    for name, type_, labels in (
        ("a", "Opaque", {"tier": "front", "app": "x"}),
        ("b", "Opaque", {"tier": "front"}),
        ("c", "example.com/other", {"tier": "back"}),
    ):
        core.create_namespaced_secret(space, {"metadata": {"name": name, "labels": labels}, "type": type_})  # type: ignore[arg-type]
    listed = core.list_namespaced_secret(space, **selectors).items
    assert "".join(required(required(secret.metadata).name) for secret in listed) == found


@pytest.mark.parametrize(
    ("content_type", "body", "data"),
    [
        ("application/merge-patch+json", {"data": {"k": None, "m": "1"}}, {"m": "1"}),
        ("application/strategic-merge-patch+json", {"data": {"$patch": "replace", "s": "1"}}, {"s": "1"}),
        ("application/json-patch+json", [{"op": "replace", "path": "/data/k", "value": "2"}], {"k": "2"}),
        (
            "application/apply-patch+yaml",
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"n": "3"}},
            {"k": "v", "n": "3"},
        ),
    ],
)
def test_patches_of_every_type(
    core: client.CoreV1Api, space: str, content_type: str, body: Any, data: dict[str, str]
) -> None:
    core.create_namespaced_config_map(space, CONFIG_MAP)  # type: ignore[arg-type]
    manager: dict[str, Any] = {"field_manager": "tests"} if "apply" in content_type else {}
    patched = core.patch_namespaced_config_map("c", space, body, _content_type=content_type, **manager)
    assert patched.data == data


def test_applying_managers_meet_and_one_is_forced(core: client.CoreV1Api, space: str) -> None:
    def apply(manager: str, value: str, **options: Any) -> client.V1ConfigMap:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": value}}
        return core.patch_namespaced_config_map(
            "c", space, body, field_manager=manager, _content_type="application/apply-patch+yaml", **options
        )

    apply("ann", "1")
    code, status = refused(apply, "bob", "2")
    assert (code, status["reason"]) == (409, "Conflict")
    assert status["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "ann"', "field": ".data.k"}
    ]
    assert apply("bob", "2", force=True).data == {"k": "2"}
    managers = required(core.read_namespaced_config_map("c", space).metadata).managed_fields
    assert [(entry.manager, "f:k" in str(entry.fields_v1)) for entry in required(managers)] == [("bob", True)]


def test_dry_runs_answer_and_keep_nothing(core: client.CoreV1Api, space: str) -> None:
    made = core.create_namespaced_config_map(space, CONFIG_MAP, dry_run="All")  # type: ignore[arg-type]
    assert required(made.metadata).uid and not required(made.metadata).resource_version
    assert refused(core.read_namespaced_config_map, "c", space)[0] == 404
    core.create_namespaced_config_map(space, CONFIG_MAP)  # type: ignore[arg-type]
    assert core.patch_namespaced_config_map("c", space, {"data": {"k": "w"}}, dry_run="All").data == {
        "k": "w"
    }
    core.delete_namespaced_config_map("c", space, dry_run="All")
    assert core.read_namespaced_config_map("c", space).data == {"k": "v"}


def test_what_the_type_does_not_have(api: client.ApiClient, space: str) -> None:
    """By the dynamic client: the typed one checks for itself."""
    maps = DynamicClient(api).resources.get(api_version="v1", kind="ConfigMap")

    def create(body: Manifest) -> Any:
        return maps.create(body={"metadata": {"name": "c"}, **body}, namespace=space)

    code, status = refused(create, {"data": {"k": 1}})
    assert (code, status["reason"]) == (400, "BadRequest")
    assert "cannot unmarshal number into Go struct field ConfigMap.data of type string" in status["message"]
    assert create({"datum": {"k": "v"}}).to_dict().keys() == {"apiVersion", "kind", "metadata"}


@pytest.mark.parametrize(
    ("verb", "arguments", "code", "reason", "message"),
    [
        ("read_namespaced_pod", ("no",), 404, "NotFound", 'pods "no" not found'),
        ("delete_namespaced_secret", ("no",), 404, "NotFound", 'secrets "no" not found'),
        (
            "create_namespaced_config_map",
            ({"metadata": {"name": "taken"}},),
            409,
            "AlreadyExists",
            'configmaps "taken" already exists',
        ),
        (
            "create_namespaced_config_map",
            ({"metadata": {"name": "Ä"}},),
            422,
            "Invalid",
            'ConfigMap "Ä" is invalid: metadata.name: Invalid value',
        ),
        (
            "create_namespaced_config_map",
            ({"metadata": {"name": "x", "namespace": "other"}},),
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            "create_namespaced_pod",
            ({"kind": "Secret", "apiVersion": "v1"},),
            400,
            "BadRequest",
            "cannot be handled as a Pod",
        ),
        (
            "create_namespaced_pod",
            ({"metadata": {"name": "x"}},),
            422,
            "Invalid",
            "spec.containers: Required value",
        ),
    ],
)
def test_errors_are_kubernetes_own(
    core: client.CoreV1Api, space: str, verb: str, arguments: Any, code: int, reason: str, message: str
) -> None:
    core.create_namespaced_config_map(space, {"metadata": {"name": "taken"}})  # type: ignore[arg-type]
    call = getattr(core, verb)
    arguments = (*arguments, space) if verb.startswith(("read", "delete")) else (space, *arguments)
    got, status = refused(call, *arguments)
    assert (got, status["reason"], status["kind"], status["apiVersion"]) == (code, reason, "Status", "v1")
    assert message in status["message"]


def test_a_stale_write_is_refused_and_a_loop_loses_nothing(api: client.ApiClient, space: str) -> None:
    core = client.CoreV1Api(api)
    core.create_namespaced_config_map(space, {"metadata": {"name": "count"}, "data": {"n": "0"}})  # type: ignore[arg-type]
    stale = core.read_namespaced_config_map("count", space)
    core.patch_namespaced_config_map("count", space, {"metadata": {"labels": {"a": "b"}}})
    code, status = refused(core.replace_namespaced_config_map, "count", space, stale)
    assert (code, status["reason"]) == (409, "Conflict")
    assert (
        "the object has been modified; please apply your changes to the latest version" in status["message"]
    )

    def add(times: int) -> None:
        while times:
            counter = core.read_namespaced_config_map("count", space)
            required(counter.data)["n"] = str(int(required(counter.data)["n"]) + 1)
            try:
                core.replace_namespaced_config_map("count", space, counter)
                times -= 1
            except ApiException as error:
                assert error.status == 409

    adders = [threading.Thread(target=add, args=(10,)) for _ in range(4)]
    for adder in adders:
        adder.start()
    for adder in adders:
        adder.join()
    assert core.read_namespaced_config_map("count", space).data == {"n": "40"}


def test_deletion_with_preconditions(core: client.CoreV1Api, space: str) -> None:
    core.create_namespaced_config_map(space, CONFIG_MAP)  # type: ignore[arg-type]
    wrong = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="another"))
    code, status = refused(core.delete_namespaced_config_map, "c", space, body=wrong)
    assert (code, status["reason"]) == (409, "Conflict")
    assert "the UID in the precondition (another) does not match the UID in record (" in status["message"]
    deleted: Any = core.delete_namespaced_config_map("c", space)
    assert deleted["details"]["kind"] == "configmaps"


def test_deletion_of_what_is_selected(core: client.CoreV1Api, space: str) -> None:
    for name in "abc":
        labels = {"go": str(name != "b")}
        core.create_namespaced_secret(space, {"metadata": {"name": name, "labels": labels}})  # type: ignore[arg-type]
    core.delete_collection_namespaced_secret(space, label_selector="go=True")
    assert [required(secret.metadata).name for secret in core.list_namespaced_secret(space).items] == ["b"]


def test_a_finalizer_holds_what_is_deleted(core: client.CoreV1Api, space: str) -> None:
    meta = {"name": "held", "finalizers": ["example.com/hold"]}
    core.create_namespaced_config_map(space, {"metadata": meta})  # type: ignore[arg-type]
    core.delete_namespaced_config_map("held", space)
    held = core.read_namespaced_config_map("held", space)
    assert required(held.metadata).deletion_timestamp
    code, status = refused(
        core.patch_namespaced_config_map, "held", space, {"metadata": {"finalizers": ["example.com/new"]}}
    )
    assert (
        code == 422 and "no new finalizers can be added if the object is being deleted" in status["message"]
    )
    core.patch_namespaced_config_map("held", space, {"metadata": {"finalizers": None}})
    assert refused(core.read_namespaced_config_map, "held", space)[0] == 404


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
def test_dependents_follow_their_owner_or_stay(core: client.CoreV1Api, space: str, policy: str) -> None:
    owner = core.create_namespaced_config_map(space, {"metadata": {"name": "owner"}})  # type: ignore[arg-type]
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": required(owner.metadata).uid,
        "blockOwnerDeletion": True,
    }
    child = core.create_namespaced_secret(
        space,
        {"metadata": {"name": "child", "ownerReferences": [reference]}},  # type: ignore[arg-type]
    )
    version = required(child.metadata).resource_version
    core.delete_namespaced_config_map("owner", space, propagation_policy=policy)
    events = watch.Watch().stream(
        core.list_namespaced_secret, space, resource_version=version, timeout_seconds=30
    )
    event = next(events)
    events.close()
    assert event["type"] == ("MODIFIED" if policy == "Orphan" else "DELETED")
    assert bool(event["object"].metadata.owner_references) is (policy != "Orphan")


def test_what_a_server_says_of_itself(api: client.ApiClient) -> None:
    version = client.VersionApi(api).get_code()
    assert (version.major, version.minor[:2]) == ("1", "36")
    assert "v1" in client.CoreApi(api).get_api_versions().versions
    groups = {group.name for group in client.ApisApi(api).get_api_versions().groups}
    assert groups >= {"coordination.k8s.io", "policy", "rbac.authorization.k8s.io", "discovery.k8s.io"}
    pods = next(r for r in client.CoreV1Api(api).get_api_resources().resources if r.name == "pods")
    assert (pods.kind, pods.namespaced, pods.short_names) == ("Pod", True, ["po"])


def test_reviews(api: client.ApiClient) -> None:
    attributes = {"resourceAttributes": {"verb": "create", "resource": "pods", "namespace": "default"}}
    review = client.AuthorizationV1Api(api).create_self_subject_access_review({"spec": attributes})  # type: ignore[arg-type]
    assert required(review.status).allowed
    me = client.AuthenticationV1Api(api).create_self_subject_review({})  # type: ignore[arg-type]
    assert required(required(me.status).user_info).username == "kubernetes-admin"
