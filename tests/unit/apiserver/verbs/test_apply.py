"""R-SYS-1: server-side apply: owning, giving up, conflicts, force; and the record that other writes keep."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.apply.configuration import configured_fields
from podling.apiserver.apply.schema import schema_of
from podling.model.errors import StatusError
from podling.model.types.apiextensions import CustomResourceDefinition

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CONFIGS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
A = f"{CONFIGS}/a"
P = f"{PODS}/p"
APP = {"name": "app", "image": "busybox:1"}


async def apply(api: Conversation, target: str, body: Any, manager: str = "me", query: str = "") -> Any:
    where = f"{target}?fieldManager={manager}{query}"
    return await api.say("PATCH", where, body, Content_Type="application/apply-patch+yaml")


def config(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def pod(*containers: Any, **meta: Any) -> dict[str, Any]:
    spec = {"containers": containers or [APP]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **meta}, "spec": spec}


def owners(answer: Any) -> dict[str, Any]:
    """Fields by `manager/operation`."""
    entries = answer.body["metadata"].get("managedFields", [])
    return {f"{entry['manager']}/{entry['operation']}": entry["fieldsV1"] for entry in entries}


async def test_creates_what_is_not_there(api: Conversation) -> None:
    answer = await apply(api, A, config(k="v"))
    assert answer.status == 201 and answer.body["data"] == {"k": "v"}
    assert answer.body["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": "2026-01-02T03:04:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:k": {}}},
        }
    ]
    assert (await api.get(A)).body == answer.body


async def test_the_same_again_writes_nothing(api: Conversation) -> None:
    first = await apply(api, A, config(k="v"))
    api.clock.move(60)
    again = await apply(api, A, config(k="v"))
    assert again.status == 200 and again.body == first.body


async def test_the_same_in_other_words_writes_nothing(api: Conversation) -> None:
    target = "/api/v1/namespaces/default/resourcequotas/q"
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"pods": 1000}},
    }
    first = await apply(api, target, quota)
    api.clock.move(60)
    again = await apply(api, target, quota)
    assert again.status == 200 and again.body == first.body


async def test_what_is_named_no_more_goes(api: Conversation) -> None:
    await apply(api, A, config(k="v", l="w"))
    assert (await apply(api, A, config(k="v"))).body["data"] == {"k": "v"}


async def test_an_object_keeps_its_name_without_its_last_label(api: Conversation) -> None:
    configuration = config(k="v")
    labelled = {**configuration, "metadata": {**configuration["metadata"], "labels": {"a": "b"}}}
    await apply(api, A, labelled)
    answer = await apply(api, A, configuration)
    assert answer.status == 200 and "labels" not in answer.body["metadata"]


async def test_what_is_null_is_named_and_stays(api: Conversation) -> None:
    await apply(api, A, config(k="v"))
    nothing = {**config(), "metadata": {"name": "a", "labels": None}, "data": None}
    answer = await apply(api, A, nothing, "other")
    assert answer.body["data"] == {"k": "v"}
    assert owners(answer)["other/Apply"] == {"f:data": {}, "f:metadata": {"f:labels": {}}}
    assert "data" not in (await apply(api, A, nothing)).body


async def test_what_others_manage_too_stays(api: Conversation) -> None:
    await apply(api, A, config(k="v", l="w"))
    await apply(api, A, config(l="w"), "other")
    answer = await apply(api, A, config(k="v"))
    assert answer.body["data"] == {"k": "v", "l": "w"}
    assert owners(answer)["other/Apply"] == {"f:data": {"f:l": {}}}


async def test_one_conflict(api: Conversation) -> None:
    await api.post(f"{CONFIGS}?fieldManager=kubectl", config(key="v"))
    answer = await apply(api, A, config(key="w"))
    assert answer.status == 409 and answer.body["reason"] == "Conflict"
    assert answer.message == 'Apply failed with 1 conflict: conflict with "kubectl" using v1: .data.key'
    assert answer.body["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl" using v1',
            "field": ".data.key",
        }
    ]
    assert (await api.get(A)).body["data"] == {"key": "v"}


async def test_many_conflicts(api: Conversation) -> None:
    await apply(api, A, config(k="v"), "z")
    await api.patch(f"{A}?fieldManager=b", {"data": {"l": "w", "m": "x"}})
    answer = await apply(api, A, config(k="1", l="1", m="1"))
    assert answer.message == (
        'Apply failed with 3 conflicts: conflicts with "b" using v1:\n- .data.l\n- .data.m\n'
        'conflicts with "z":\n- .data.k'
    )


async def test_force_takes(api: Conversation) -> None:
    await apply(api, A, config(k="v", l="w"), "z")
    answer = await apply(api, A, config(k="1"), "me", "&force=true")
    assert answer.status == 200 and answer.body["data"] == {"k": "1", "l": "w"}
    assert owners(answer) == {"z/Apply": {"f:data": {"f:l": {}}}, "me/Apply": {"f:data": {"f:k": {}}}}


async def test_what_changes_nothing_has_no_time_of_its_own(api: Conversation) -> None:
    await apply(api, A, config(k="v"))
    api.clock.move(60)
    same, other = await apply(api, A, config(k="v")), await apply(api, A, config(k="v"), "other")
    assert [entry.get("time") for entry in same.body["metadata"]["managedFields"]] == ["2026-01-02T03:04:05Z"]
    times = {entry["manager"]: entry.get("time") for entry in other.body["metadata"]["managedFields"]}
    assert times == {"me": "2026-01-02T03:04:05Z", "other": None}


async def test_null_where_nothing_is_has_a_time(api: Conversation) -> None:
    await apply(api, A, config(k="v"))
    answer = await apply(api, A, {**config(k="v"), "binaryData": None}, "other")
    times = {entry["manager"]: entry.get("time") for entry in answer.body["metadata"]["managedFields"]}
    assert times == dict.fromkeys(("me", "other"), "2026-01-02T03:04:05Z")


async def test_a_conflict_is_told_before_what_cannot_be_read(api: Conversation) -> None:
    binary = {**config(), "binaryData": {"k": "YQ=="}}
    await apply(api, A, binary)
    answer = await apply(api, A, binary | {"binaryData": {"k": "!"}}, "other")
    assert answer.status == 409
    answer = await apply(api, A, binary | {"binaryData": {"k": "!"}})
    assert answer.status == 400 and "illegal base64 data" in answer.message


async def test_an_update_takes_from_who_applied(api: Conversation) -> None:
    await apply(api, A, config(k="v", l="w"))
    api.clock.move(60)
    answer = await api.patch(f"{A}?fieldManager=editor", {"data": {"k": "x"}})
    assert owners(answer) == {"me/Apply": {"f:data": {"f:l": {}}}, "editor/Update": {"f:data": {"f:k": {}}}}
    times = {entry["manager"]: entry["time"] for entry in answer.body["metadata"]["managedFields"]}
    assert times == {"me": "2026-01-02T03:04:05Z", "editor": "2026-01-02T03:05:05Z"}


async def test_list_items_are_merged_by_key(api: Conversation) -> None:
    await apply(api, P, pod({**APP, "env": [{"name": "A", "value": "1"}]}))
    answer = await apply(api, P, pod(labels={"x": "y"}, name="p"), "labels", "&force=true")
    assert answer.status == 200, answer.body
    answer = await apply(
        api, P, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"x": "y"}}}, "labels"
    )
    assert answer.body["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}]
    assert owners(answer)["labels/Apply"] == {"f:metadata": {"f:labels": {"f:x": {}}}}
    assert owners(answer)["me/Apply"]["f:spec"] == {
        "f:containers": {
            'k:{"name":"app"}': {
                ".": {},
                "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
                "f:image": {},
                "f:name": {},
            }
        }
    }


async def test_a_created_pod_is_recorded_as_kubernetes_records_it(api: Conversation) -> None:
    made = await api.post(
        PODS,
        pod({**APP, "ports": [{"containerPort": 80}]}, labels={"run": "p"}),
        User_Agent="kubectl/v1.32 (x)",
    )
    assert owners(made) == {
        "kubectl/Update": {
            "f:metadata": {"f:labels": {".": {}, "f:run": {}}},
            "f:spec": {
                "f:containers": {
                    'k:{"name":"app"}': {
                        ".": {},
                        "f:image": {},
                        "f:imagePullPolicy": {},
                        "f:name": {},
                        "f:ports": {
                            ".": {},
                            'k:{"containerPort":80,"protocol":"TCP"}': {
                                ".": {},
                                "f:containerPort": {},
                                "f:protocol": {},
                            },
                        },
                        "f:resources": {},
                        "f:terminationMessagePath": {},
                        "f:terminationMessagePolicy": {},
                    }
                },
                "f:dnsPolicy": {},
                "f:enableServiceLinks": {},
                "f:restartPolicy": {},
                "f:schedulerName": {},
                "f:securityContext": {},
                "f:terminationGracePeriodSeconds": {},
            },
        }
    }


async def test_status_is_recorded_by_its_subresource(api: Conversation) -> None:
    await apply(api, P, pod())
    status = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"message": "hello"}}
    answer = await apply(api, f"{P}/status", status, "kubelet")
    assert answer.status == 200 and answer.body["status"]["message"] == "hello"
    entry = answer.body["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["subresource"]) == ("kubelet", "status")
    assert entry["fieldsV1"] == {"f:status": {"f:message": {}}}
    conflict = await apply(api, f"{P}/status", {**status, "status": {"message": "no"}}, "x")
    assert conflict.message == (
        'Apply failed with 1 conflict: conflict with "kubelet" with subresource "status": .status.message'
    )


async def test_managed_fields_of_the_client_count(api: Conversation) -> None:
    """As `kubectl apply --server-side` rewrites them, to take over from the client's side."""
    await api.post(f"{CONFIGS}?fieldManager=kubectl-client-side-apply", config(k="v"))
    entries = (await api.get(A)).body["metadata"]["managedFields"]
    entries[0] |= {"manager": "kubectl", "operation": "Apply"}
    rewrite = [{"op": "replace", "path": "/metadata/managedFields", "value": entries}]
    assert (await api.patch(A, rewrite, "json-patch")).status == 200
    answer = await apply(api, A, config(l="w"), "kubectl")
    assert answer.body["data"] == {"l": "w"}
    assert owners(answer) == {"kubectl/Apply": {"f:data": {"f:l": {}}}}


@pytest.mark.parametrize("sent", [[{}], []])
@pytest.mark.parametrize("verb", ["patch", "put"])
async def test_no_entry_and_an_empty_one_forget_all(api: Conversation, verb: str, sent: Any) -> None:
    await apply(api, A, config(k="v"))
    if verb == "patch":
        stripped = await api.patch(A, {"metadata": {"managedFields": sent}})
    else:
        stripped = await api.put(A, {**config(k="v"), "metadata": {"name": "a", "managedFields": sent}})
    assert owners(stripped) == {}
    assert owners(await api.patch(A, {"data": {"k": "w"}})) == {}
    applied = await apply(api, A, config(l="x"))
    assert owners(applied) == {
        "me/Apply": {"f:data": {"f:l": {}}},
        "before-first-apply/Update": {"f:data": {".": {}, "f:k": {}}},
    }


@pytest.mark.parametrize("sent", [[{"manager": "x"}], [{"operation": "Update", "fieldsV1": {"q:": 5}}]])
async def test_entries_that_say_nothing_change_nothing(api: Conversation, sent: Any) -> None:
    before = await apply(api, A, config(k="v"))
    body = {**before.body, "metadata": {**before.body["metadata"], "managedFields": sent}}
    assert (await api.put(A, body)).body == before.body


async def test_many_updaters_are_joined(api: Conversation) -> None:
    await api.post(f"{CONFIGS}?fieldManager=m0", config(k="v"))
    for n in range(1, 15):
        api.clock.move(1)
        answer = await api.patch(f"{A}?fieldManager=m{n}", {"data": {f"k{n}": "v"}})
    managers = [entry["manager"] for entry in answer.body["metadata"]["managedFields"]]
    assert managers == ["ancient-changes", *(f"m{n}" for n in range(6, 15))]
    kept = {f"f:k{n}" for n in range(1, 6)} | {"f:k", "."}
    assert owners(answer)["ancient-changes/Update"]["f:data"].keys() == kept


async def test_what_kubectl_applied_before_is_its_own(api: Conversation) -> None:
    last = json.dumps(config(k="v"))
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": last}
    old = config(k="v")
    old["metadata"] = {"name": "a", "annotations": annotations}
    await api.post(f"{CONFIGS}?fieldManager=kubectl-client-side-apply", old)
    assert (await apply(api, A, config(k="w"), "somebody")).status == 409
    answer = await apply(api, A, config(k="w"), "kubectl")
    assert answer.status == 200 and answer.body["data"] == {"k": "w"}
    kept = answer.body["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert json.loads(kept) == config(k="w")


@pytest.mark.parametrize(
    ("query", "body", "status", "message"),
    [
        ("", config(), 422, 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value'),
        (
            "fieldManager=" + "x" * 129,
            config(),
            422,
            "fieldManager: Too long: may not be more than 128 bytes",
        ),
        ("fieldManager=a%00", config(), 422, "invalid character U+0000 (at position 1)"),
        ("fieldManager=m", b"a: [", 400, "error converting YAML to JSON"),
        ("fieldManager=m", b"&a [*a]", 400, "aliases"),
        ("fieldManager=m", b"[" * 5000, 400, ""),
        ("fieldManager=m", b"5", 400, "error decoding YAML"),
        ("fieldManager=m", {"apiVersion": "v1"}, 400, "invalid object type: /v1, Kind="),
        ("fieldManager=m", {**config(), "apiVersion": "a/b/c"}, 400, "invalid object type: /, Kind="),
        ("fieldManager=m", b"", 400, "invalid object type: /, Kind="),
        (
            "fieldManager=m",
            {**config(), "metadata": {"name": "a", "managedFields": []}},
            400,
            "metadata.managedFields must be nil",
        ),
        ("fieldManager=m", {"kind": "ConfigMap"}, 400, "invalid object type: /, Kind=ConfigMap"),
        ("fieldManager=m", {**config(), "kind": "Pod"}, 400, "invalid object type: /v1, Kind=Pod"),
        ("fieldManager=m", {**config(), "spec": {}}, 400, ".spec: field not declared in schema"),
        ("fieldManager=m", {**config(), "metadata": {}}, 400, "(a based on URL) was undeterminable"),
        (
            "fieldManager=m",
            {**config(), "metadata": {"name": "b"}},
            400,
            "does not match the name on the URL",
        ),
        (
            "fieldManager=m",
            {**config(), "metadata": {"name": "a", "managedFields": [{"manager": "x"}]}},
            400,
            "metadata.managedFields must be nil",
        ),
        ("fieldManager=m", {**config(), "data": [1]}, 400, ".data: expected map, got [1]"),
        ("fieldManager=m", {**config(), "metadata": {"name": "a", "uid": "1"}}, 409, "uid mismatch"),
        (
            "fieldManager=m&fieldValidation=Strict",
            b"apiVersion: v1\nkind: ConfigMap\nkind: ConfigMap\n",
            400,
            'line 3: key "kind" already set in map',
        ),
    ],
)
async def test_refusals(api: Conversation, query: str, body: Any, status: int, message: str) -> None:
    answer = await api.say("PATCH", f"{A}?{query}", body, Content_Type="application/apply-patch+yaml")
    assert answer.status == status, answer.body
    assert message in answer.message
    assert (await api.get(A)).status == 404


@pytest.mark.parametrize(
    ("target", "body", "fault"),
    [
        (A, {"data": {"k": 1}}, ".data.k: expected string, got &value.valueUnstructured{Value:1}"),
        (A, {"immutable": "yes"}, '.immutable: expected boolean, got &value.valueUnstructured{Value:"yes"}'),
        (P, {"spec": {"containers": [{"name": "c", "image": True}]}},
         '.spec.containers[name="c"].image: expected string, got &value.valueUnstructured{Value:true}'),
        (P, {"spec": {"activeDeadlineSeconds": "1"}},
         ".spec.activeDeadlineSeconds: expected numeric (int or float), got string"),
    ],
)  # fmt: skip
async def test_scalars_of_another_type(api: Conversation, target: str, body: Any, fault: str) -> None:
    kind, name = ("ConfigMap", "a") if target == A else ("Pod", "p")
    whole = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **body}
    answer = await apply(api, target, whole)
    assert answer.status == 400
    assert answer.message == f"failed to create typed patch object (/{name}; /v1, Kind={kind}): {fault}"


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"imagePullSecrets": [{"name": "s", "a": 1}]}, '.spec.imagePullSecrets[name="s"].a'),
        ({"tolerations": [{"a": 1}]}, ".spec.tolerations[0].a"),
        ({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"a": 1}}}},
         ".spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.a"),
    ],
)  # fmt: skip
async def test_fields_unknown_in_what_is_one_value(api: Conversation, spec: Any, fault: str) -> None:
    answer = await apply(api, P, {**pod(), "spec": {**pod()["spec"], **spec}})
    assert answer.status == 400 and answer.message.endswith(f"{fault}: field not declared in schema")


async def test_what_is_one_value_may_be_as_deep_as_the_body(api: Conversation) -> None:
    schema: dict[str, Any] = {"type": "string", "novel": 1}
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": schema}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "as.b.test"},
        "spec": {"versions": [version]},
    }
    target = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/as.b.test"
    answer = await apply(api, target, definition)
    assert answer.status == 400 and answer.message.endswith(
        ".properties.a.novel: field not declared in schema"
    )


def test_many_faults_deep_within_one_value_take_little_room() -> None:
    schema: dict[str, Any] = {"allOf": [{"novel": 1}] * 20_000}
    for _ in range(300):
        schema = {"properties": {"a": schema}}
    definition = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}
    tracemalloc.start()
    with pytest.raises(StatusError) as refused:
        configured_fields(schema_of(CustomResourceDefinition), definition, "a")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ".allOf[" in refused.value.message
    assert most < 20 << 20


async def test_a_key_that_is_null_is_a_key(api: Conversation) -> None:
    answer = await apply(api, P, {**pod(), "spec": {**pod()["spec"], "imagePullSecrets": [{"name": None}]}})
    assert owners(answer)["me/Apply"]["f:spec"]["f:imagePullSecrets"] == {'k:{"name":null}': {}}


async def test_items_without_their_keys_or_twice(api: Conversation) -> None:
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "a", "namespace": "default"},
    }
    target = "/api/v1/namespaces/default/serviceaccounts/a"
    answer = await apply(api, target, account | {"secrets": [{"kind": "Secret"}]})
    assert answer.status == 400 and answer.message == (
        "failed to create typed patch object (default/a; /v1, Kind=ServiceAccount): .secrets: element 0: "
        'associative list with keys has an element that omits all key fields ["name"] (and doesn\'t have '
        "default values for any key fields)"
    )
    answer = await apply(api, P, pod({"image": "x"}))
    assert answer.status == 422 and "spec.containers[0].name: Required value" in answer.message
    answer = await apply(api, P, pod(APP, APP))
    assert answer.message.endswith('.spec.containers: duplicate entries for key [name="app"]')


async def test_force_is_for_apply_alone(api: Conversation) -> None:
    await apply(api, A, config(k="v"))
    answer = await api.patch(f"{A}?force=true", {})
    assert answer.status == 422 and "may not be specified for non-apply patch" in answer.message


async def test_dry_run_writes_nothing(api: Conversation) -> None:
    assert (await apply(api, A, config(k="v"), "me", "&dryRun=All")).status == 201
    assert (await api.get(A)).status == 404
    await apply(api, A, config(k="v"))
    assert (await apply(api, A, config(k="w"), "me", "&dryRun=All")).body["data"] == {"k": "w"}
    assert (await api.get(A)).body["data"] == {"k": "v"}
