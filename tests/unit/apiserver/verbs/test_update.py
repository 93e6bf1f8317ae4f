"""R-SYS-1: replacing objects, with optimistic concurrency."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CONFIGS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@pytest.fixture
async def config(api: Conversation) -> Any:
    return (await api.post(CONFIGS, {"metadata": {"name": "a"}, "data": {"k": "v"}})).body


async def test_a_replacement(api: Conversation, config: Any) -> None:
    config["data"] = {"k": "w"}
    answer = await api.put(f"{CONFIGS}/a", config)
    assert answer.status == 200 and answer.body["data"] == {"k": "w"}
    assert answer.body["metadata"]["uid"] == config["metadata"]["uid"]
    assert int(answer.body["metadata"]["resourceVersion"]) > int(config["metadata"]["resourceVersion"])


async def test_nothing_changed_is_nothing_written(api: Conversation, config: Any) -> None:
    revision = api.storage.revision
    answer = await api.put(f"{CONFIGS}/a", config)
    assert answer.body == config and api.storage.revision == revision


@pytest.mark.parametrize(
    ("items", "made", "changed", "fields"),
    [
        (CONFIGS, {"immutable": True}, {"data": {"not a key": ""}}, ["immutable", "data", "data[not a key]"]),
        (
            "/apis/networking.k8s.io/v1/ingressclasses",
            {"spec": {"controller": "a.b/c"}},
            {"spec": {"controller": ""}},
            ["spec.controller", "spec.controller"],
        ),
        (
            "/apis/storage.k8s.io/v1/volumeattributesclasses",
            {"driverName": "a", "parameters": {"a": "b"}},
            {"driverName": "", "parameters": {"a": "b"}},
            ["driverName", "driverName"],
        ),
    ],
)
async def test_what_may_not_change_is_told_first(
    api: Conversation, items: str, made: dict[str, Any], changed: dict[str, Any], fields: list[str]
) -> None:
    metadata = {"metadata": {"name": "x"}}
    written = (await api.post(items, {**metadata, **made})).body
    answer = await api.put(f"{items}/x", {"metadata": written["metadata"], **changed})
    causes = answer.body["details"]["causes"]
    assert [cause["field"] for cause in causes] == fields
    assert all("updates" in one["message"] or "immutable" in one["message"] for one in causes[:1])


async def test_a_stale_replacement(api: Conversation, config: Any) -> None:
    await api.put(f"{CONFIGS}/a", {**config, "data": {"k": "w"}})
    answer = await api.put(f"{CONFIGS}/a", {**config, "data": {"k": "x"}})
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


async def test_without_a_version_it_overwrites(api: Conversation, config: Any) -> None:
    answer = await api.put(f"{CONFIGS}/a", {"metadata": {"name": "a"}, "data": {"k": "x"}})
    assert answer.status == 200 and answer.body["data"] == {"k": "x"}
    assert answer.body["metadata"]["uid"] == config["metadata"]["uid"]


async def test_overwriters_do_not_conflict(api: Conversation, config: Any) -> None:
    async def overwrite(value: int) -> int:
        body = {"metadata": {"name": "a"}, "data": {"k": str(value)}}
        return int((await api.put(f"{CONFIGS}/a", body)).status)

    assert set(await asyncio.gather(*(overwrite(value) for value in range(20)))) == {200}


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"name": "b"}, 400, "the name of the object (b) does not match the name on the URL (a)"),
        (
            {"name": ""},
            400,
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        ),
        ({"namespace": "other"}, 400, "does not match the namespace sent on the request"),
        ({"name": "b", "namespace": "other"}, 400, "does not match the namespace sent on the request"),
        ({"uid": "x"}, 409, "Precondition failed: UID in precondition: x, UID in object meta: "),
    ],
)
async def test_refusals(api: Conversation, config: Any, change: Any, status: int, message: str) -> None:
    answer = await api.put(f"{CONFIGS}/a", {**config, "metadata": {**config["metadata"], **change}})
    assert answer.status == status and message in answer.message


async def test_an_object_stays_as_old_as_it_is(api: Conversation, config: Any) -> None:
    born = config["metadata"]["creationTimestamp"]
    younger = {**config["metadata"], "creationTimestamp": "2040-01-01T00:00:00Z"}
    answer = await api.put(f"{CONFIGS}/a", {**config, "metadata": younger})
    assert (answer.status, answer.body["metadata"]["creationTimestamp"]) == (200, born)


async def test_what_is_not_there(api: Conversation) -> None:
    assert (await api.put(f"{CONFIGS}/a", {"metadata": {"name": "a"}})).status == 404


RBAC = "/apis/rbac.authorization.k8s.io/v1"
CREATED: list[tuple[str, dict[str, Any]]] = [
    ("/api/v1/namespaces/default/services", {"spec": {"ports": [{"port": 80}]}}),
    ("/api/v1/namespaces/default/limitranges", {"spec": {"limits": []}}),
    ("/api/v1/namespaces/default/endpoints", {}),
    ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}),
    (f"{RBAC}/clusterroles", {"rules": []}),
    (f"{RBAC}/namespaces/default/roles", {"rules": []}),
    (f"{RBAC}/clusterrolebindings", {"roleRef": {"kind": "ClusterRole", "name": "r"}}),
    (f"{RBAC}/namespaces/default/rolebindings", {"roleRef": {"kind": "Role", "name": "r"}}),
]


@pytest.mark.parametrize(("path", "body"), CREATED, ids=lambda case: str(case).rpartition("/")[2])
async def test_kinds_that_are_created_by_replacement(
    api: Conversation, path: str, body: dict[str, Any]
) -> None:
    made = await api.put(f"{path}/x", {"metadata": {"name": "x"}, **body})
    assert made.status == 201, made.body
    assert (await api.put(f"{path}/x", made.body)).status == 200


async def test_some_kinds_are_created_by_replacement(api: Conversation) -> None:
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
    made = await api.put(f"{LEASES}/l", lease)
    assert made.status == 201
    unversioned = await api.put(f"{LEASES}/l", lease)
    assert unversioned.status == 422
    assert (
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in unversioned.message
    )


async def test_a_dry_run_changes_nothing(api: Conversation, config: Any) -> None:
    answer = await api.put(f"{CONFIGS}/a?dryRun=All", {**config, "data": {"k": "x"}})
    assert answer.status == 200 and answer.body["data"] == {"k": "x"}
    assert (await api.get(f"{CONFIGS}/a")).body == config


async def test_status_and_spec_are_written_apart(api: Conversation) -> None:
    """R-SYS-1: the object's PUT keeps status, the status subresource keeps everything else."""
    spec = {"containers": [{"name": "c", "image": "busybox"}]}
    pod = (await api.post(PODS, {"metadata": {"name": "p"}, "spec": spec})).body
    pod["status"] = {"phase": "Running"}
    pod["metadata"]["labels"] = {"a": "b"}
    kept = (await api.put(f"{PODS}/p", pod)).body
    assert kept["status"]["phase"] == "Pending" and kept["metadata"]["labels"] == {"a": "b"}
    kept["status"]["phase"] = "Running"
    kept["metadata"]["labels"] = {"a": "c"}
    kept["spec"]["containers"][0]["image"] = "other"
    written = (await api.put(f"{PODS}/p/status", kept)).body
    assert written["status"]["phase"] == "Running" and written["spec"] == pod["spec"]
    assert written["metadata"]["generation"] == 1


async def test_generation_counts_changes_of_the_spec(api: Conversation) -> None:
    spec = {"containers": [{"name": "c", "image": "busybox"}]}
    pod = (await api.post(PODS, {"metadata": {"name": "p"}, "spec": spec})).body
    pod["spec"]["containers"][0]["image"] = "other"
    assert (await api.put(f"{PODS}/p", pod)).body["metadata"]["generation"] == 2
