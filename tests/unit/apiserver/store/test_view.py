"""R-SYS-1: one stored object, read and written in both versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CORE = "/api/v1/namespaces/default/events"
NEWER = "/apis/events.k8s.io/v1/namespaces/default/events"


V1, V2 = (f"/apis/autoscaling/{v}/namespaces/default/horizontalpodautoscalers" for v in ("v1", "v2"))
MEMORY = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"averageUtilization": 50, "type": "Utilization"}},
}
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"averageUtilization": 70, "type": "Utilization"}},
}
KEPT = "autoscaling.alpha.kubernetes.io/metrics"


def scaler(**spec: Any) -> dict[str, Any]:
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    return {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3, **spec}}


def core_event(name: str = "e") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Started",
        "message": "it runs",
        "type": "Normal",
    }


async def test_written_in_one_version_read_in_the_other(api: Conversation) -> None:
    made = (await api.post(CORE, core_event())).body
    seen = (await api.get(f"{NEWER}/e")).body
    assert (seen["apiVersion"], seen["kind"]) == ("events.k8s.io/v1", "Event")
    assert seen["note"] == "it runs" and seen["regarding"]["name"] == "p"
    assert seen["metadata"] == made["metadata"]


async def test_replaced_in_one_version_changed_in_the_other(api: Conversation) -> None:
    await api.post(CORE, core_event())
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}
    patched = await api.patch(f"{NEWER}/e", {"series": series})
    assert patched.status == 200
    assert (await api.get(f"{CORE}/e")).body["series"] == series
    reworded = await api.patch(f"{CORE}/e", {"message": "it still runs"})
    assert reworded.status == 200
    assert (await api.get(f"{NEWER}/e")).body["note"] == "it still runs"
    assert (await api.post(NEWER, {"metadata": {"name": "e"}})).status in (409, 422)
    assert (await api.delete(f"{NEWER}/e")).status == 200
    assert (await api.get(f"{CORE}/e")).status == 404


async def test_watched_in_both_versions(api: Conversation) -> None:
    async with await api.watch(f"{CORE}?watch=1") as old, await api.watch(f"{NEWER}?watch=1") as new:
        await api.post(CORE, core_event())
        await api.delete(f"{CORE}/e")
        assert await old.names(2) == await new.names(2) == ["ADDED e", "DELETED e"]


async def test_an_object_has_one_version(api: Conversation) -> None:
    """Not also that of the stored object: a reader of the last of two would resume a watch in the past."""
    made = (await api.post(CORE, core_event())).body
    async with await api.watch(f"{NEWER}?watch=1") as watch:
        await api.delete(f"{NEWER}/e")
        versions = [(await watch.next())["object"]["metadata"]["resourceVersion"] for _ in range(2)]
    assert made["metadata"]["resourceVersion"] == versions[0] != versions[1]


async def test_listed_and_selected_by_their_own_names(api: Conversation) -> None:
    await api.post(CORE, core_event())
    assert len((await api.get(f"{CORE}?fieldSelector=involvedObject.name%3Dp")).body["items"]) == 1
    assert len((await api.get(f"{NEWER}?fieldSelector=regarding.name%3Dp")).body["items"]) == 1
    assert (await api.get(f"{NEWER}?fieldSelector=involvedObject.name%3Dp")).status == 400


async def test_both_are_there_after_a_restart(api: Conversation) -> None:
    await api.post(CORE, core_event())
    await api.restart()
    assert (await api.get(f"{NEWER}/e")).body["note"] == "it runs"


async def test_what_the_older_version_does_not_know_stays(api: Conversation) -> None:
    await api.post(V2, scaler(metrics=[CPU, MEMORY]))
    memory = {"type": "Resource", "resource": {"name": "memory", "current": {"value": "3"}}}
    await api.patch(f"{V2}/h/status", {"status": {"currentMetrics": [memory]}})
    older = (await api.get(f"{V1}/h")).body
    assert older["spec"]["targetCPUUtilizationPercentage"] == 70
    assert "memory" in older["metadata"]["annotations"][KEPT]
    await api.patch(f"{V1}/h", {"spec": {"maxReplicas": 5}})
    newer = (await api.get(f"{V2}/h")).body
    assert (newer["spec"]["maxReplicas"], newer["spec"]["metrics"]) == (5, [MEMORY, CPU])
    assert newer["status"]["currentMetrics"] == [memory]
    await api.patch(f"{V1}/h/status", {"status": {"currentReplicas": 2}})
    assert (await api.get(f"{V2}/h")).body["spec"]["metrics"] == [MEMORY, CPU]


async def test_managers_lose_what_was_written_in_another_version(api: Conversation) -> None:
    await api.post(f"{V2}?fieldManager=first", scaler(metrics=[CPU]))
    change = {"spec": {"maxReplicas": 5, "targetCPUUtilizationPercentage": 60}}
    answer = await api.patch(f"{V1}/h?fieldManager=second", change)
    first, second = answer.body["metadata"]["managedFields"]
    assert (first["apiVersion"], set(first["fieldsV1"]["f:spec"])) == (
        "autoscaling/v2",
        {"f:minReplicas", "f:scaleTargetRef"},
    )
    assert second["fieldsV1"] == {"f:spec": {"f:maxReplicas": {}, "f:targetCPUUtilizationPercentage": {}}}


async def test_faults_and_rows_are_those_of_what_is_stored(api: Conversation) -> None:
    refused = await api.post(V1, {"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "minReplicas": 4}})
    assert refused.status == 422 and "spec.scaleTargetRef.kind: Required value" in refused.message
    assert (await api.get(f"{V1}/h")).message == 'horizontalpodautoscalers.autoscaling "h" not found'
    await api.post(V1, scaler(targetCPUUtilizationPercentage=20))
    table = await api.get(V1, Accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    (row,) = table.body["rows"]
    assert row["cells"][:6] == ["h", "Deployment/d", "cpu: <unknown>/20%", "1", 3, 0]


async def test_a_dry_run_stores_nothing(api: Conversation) -> None:
    answer = await api.post(f"{V1}?dryRun=All", scaler())
    assert (answer.status, answer.body["spec"]["targetCPUUtilizationPercentage"]) == (201, 80)
    assert "resourceVersion" not in answer.body["metadata"]
    assert (await api.get(V1)).body["items"] == []
