"""R-SYS-1: deletion: at once, with grace, held by finalizers, and only what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CONFIGS = "/api/v1/namespaces/default/configmaps"
A = f"{CONFIGS}/a"
PODS = "/api/v1/namespaces/default/pods"
P = f"{PODS}/p"


@pytest.fixture
async def config(api: Conversation) -> Any:
    return (await api.post(CONFIGS, {"metadata": {"name": "a"}})).body


async def running_pod(api: Conversation, **meta: Any) -> Any:
    """A pod bound to a node: deleting it needs the node's consent."""
    spec = {"containers": [{"name": "c", "image": "busybox"}], "nodeName": "n"}
    answer = await api.post(PODS, {"metadata": {"name": "p", **meta}, "spec": spec})
    assert answer.status == 201, answer.body
    return answer.body


async def test_at_once(api: Conversation, config: Any) -> None:
    answer = await api.delete(A)
    assert (answer.status, answer.body) == (
        200,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": "a", "kind": "configmaps", "uid": config["metadata"]["uid"]},
        },
    )
    assert (await api.get(A)).status == 404
    assert (await api.delete(A)).status == 404


async def test_a_dry_run_deletes_nothing(api: Conversation, config: Any) -> None:
    assert (await api.delete(f"{A}?dryRun=All")).status == 200
    assert (
        await api.delete(A, {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]})
    ).status == 200
    assert (await api.get(A)).body == config


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (
            {"preconditions": {"uid": "x"}},
            409,
            "the UID in the precondition (x) does not match the UID in record (",
        ),
        ({"preconditions": {"resourceVersion": "1"}}, 409, "The object might have been modified"),
        ({"propagationPolicy": "Sideways"}, 422, 'Unsupported value: "Sideways"'),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422, "cannot be both set"),
        ({"kind": "Pod", "apiVersion": "v1"}, 400, "cannot be handled as a DeleteOptions"),
        ({"dryRun": ["Some"]}, 422, "dryRun"),
    ],
)
async def test_refusals(api: Conversation, config: Any, options: Any, status: int, message: str) -> None:
    answer = await api.delete(A, options)
    assert answer.status == status and message in answer.message
    assert (await api.get(A)).status == 200


async def test_options_come_in_the_version_of_any_group(api: Conversation, config: Any) -> None:
    options = {"kind": "DeleteOptions", "apiVersion": "coordination.k8s.io/v1"}
    assert (await api.delete(A, options)).status == 200


async def test_who_asks_not_to_orphan_is_told_to_wait(api: Conversation) -> None:
    """202 for what finalizers still hold, by the older option only."""
    await api.post(CONFIGS, {"metadata": {"name": "a", "finalizers": ["example.com/held"]}})
    statuses = [
        (await api.delete(A, options)).status
        for options in ({}, {"propagationPolicy": "Background"}, {"orphanDependents": False})
    ]
    assert statuses == [200, 200, 202]


async def test_a_collection_is_answered_as_it_is_asked_for(api: Conversation, config: Any) -> None:
    gone = await api.delete(CONFIGS, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert gone.body["kind"] == "Table" and gone.body["rows"][0]["cells"][0] == "a"


async def test_preconditions_that_hold(api: Conversation, config: Any) -> None:
    meta = config["metadata"]
    wanted = {"preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}}
    assert (await api.delete(A, wanted)).status == 200


async def test_a_running_pod_is_given_its_grace(api: Conversation) -> None:
    await running_pod(api)
    marked = await api.delete(P)
    meta = marked.body["metadata"]
    assert marked.status == 200
    assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == ("2026-01-02T03:04:35Z", 30)
    assert meta["generation"] == 2
    again = await api.delete(P)
    assert again.body == marked.body
    gone = await api.delete(P, {"gracePeriodSeconds": 0})
    assert gone.status == 200 and gone.body["kind"] == "Pod"
    assert (await api.get(P)).status == 404


async def test_a_pod_that_runs_nowhere_is_answered_with_the_marks_of_its_deletion(api: Conversation) -> None:
    await api.post(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    gone = await api.delete(P)
    meta = gone.body["metadata"]
    assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == ("2026-01-02T03:04:05Z", 0)
    assert meta["generation"] == 2
    assert (await api.get(P)).status == 404


async def test_grace_only_gets_shorter(api: Conversation) -> None:
    await running_pod(api)
    await api.delete(P, {"gracePeriodSeconds": 20})
    longer = await api.delete(f"{P}?gracePeriodSeconds=25")
    assert longer.body["metadata"]["deletionGracePeriodSeconds"] == 20
    shorter = await api.delete(f"{P}?gracePeriodSeconds=5")
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 5
    assert shorter.body["metadata"]["deletionTimestamp"] == "2026-01-02T03:04:10Z"


async def test_finalizers_hold(api: Conversation) -> None:
    await api.post(CONFIGS, {"metadata": {"name": "a", "finalizers": ["example.com/x"]}})
    held = await api.delete(A)
    assert held.body["metadata"]["deletionTimestamp"] == "2026-01-02T03:04:05Z"
    assert held.body["metadata"]["deletionGracePeriodSeconds"] == 0
    freed = await api.patch(A, {"metadata": {"finalizers": None}})
    assert freed.status == 200
    assert (await api.get(A)).status == 404


async def test_finalizers_hold_a_pod_even_without_grace(api: Conversation) -> None:
    await running_pod(api, finalizers=["example.com/x"])
    held = await api.delete(P, {"gracePeriodSeconds": 0})
    assert held.body["metadata"]["deletionGracePeriodSeconds"] == 0
    await api.patch(P, {"metadata": {"finalizers": None}})
    assert (await api.get(P)).status == 404


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
async def test_propagation_is_kept_as_a_finalizer(
    api: Conversation, config: Any, policy: str, finalizer: str
) -> None:
    held = await api.delete(f"{A}?propagationPolicy={policy}")
    assert held.body["metadata"]["finalizers"] == [finalizer]


async def test_nobody_is_warned_of_options_that_are_none(api: Conversation) -> None:
    await api.post(CONFIGS, {"metadata": {"name": "a"}})
    answer = await api.say("DELETE", f"{CONFIGS}/a", {"unknown": 1})
    assert answer.status == 200 and "Warning" not in answer.headers


async def test_a_collection(api: Conversation) -> None:
    for name, app in (("a", "x"), ("b", "y"), ("c", "x")):
        await api.post(CONFIGS, {"metadata": {"name": name, "labels": {"app": app}}})
    answer = await api.delete(f"{CONFIGS}?labelSelector=app%3Dx")
    assert answer.status == 200 and answer.body["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a", "c"]
    left = await api.get(CONFIGS)
    assert [item["metadata"]["name"] for item in left.body["items"]] == ["b"]


async def test_a_namespace_is_terminated_first(api: Conversation) -> None:
    marked = await api.delete("/api/v1/namespaces/other")
    assert marked.status == 200 and marked.body["status"]["phase"] == "Terminating"
    body = {**marked.body, "spec": {"finalizers": []}}
    assert (await api.put("/api/v1/namespaces/other/finalize", body)).status == 200
    assert (await api.get("/api/v1/namespaces/other")).status == 404


async def test_the_end_of_the_grace_is_told_before_the_removal(api: Conversation) -> None:
    await running_pod(api)
    async with await api.watch(f"{PODS}?watch=1") as watch:
        await api.delete(P, {"gracePeriodSeconds": 0})
        assert await watch.names(3) == ["ADDED p", "MODIFIED p", "DELETED p"]
