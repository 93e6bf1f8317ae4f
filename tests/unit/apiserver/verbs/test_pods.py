"""Pods through the API: warnings of what is accepted, resizing, generations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

PODS = "/api/v1/namespaces/default/pods"
POD = {
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
}
MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}


def env(*names: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "env": [{"name": name, "value": "x"} for name in names]}
    return {"metadata": {"name": "a"}, "spec": {"containers": [container]}}


async def test_what_is_accepted_may_be_warned_of(api: Conversation) -> None:
    answer = await api.post(PODS, env("A", "A"))
    assert answer.status == 201
    assert answer.headers["Warning"] == (
        '299 - "spec.containers[0].env[1]: hides previous definition of \\"A\\", '
        'which may be dropped when using apply"'
    )


async def test_updates_are_not_warned_of(api: Conversation) -> None:
    await api.post(PODS, env("A", "A"))
    answer = await api.patch(f"{PODS}/a", {"metadata": {"labels": {"a": "b"}}}, **MERGE)
    assert answer.status == 200 and "Warning" not in answer.headers


@pytest.fixture
async def pod(api: Conversation) -> Any:
    return (await api.post(PODS, POD)).body


def resized(cpu: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}


async def test_resizing_counts_as_a_generation(api: Conversation, pod: Any) -> None:
    answer = await api.patch(f"{PODS}/a/resize", resized("2"), **STRATEGIC)
    assert answer.status == 200
    assert answer.body["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert answer.body["metadata"]["generation"] == pod["metadata"]["generation"] + 1
    assert (await api.get(f"{PODS}/a/resize")).body == answer.body


async def test_a_resize_is_remembered_as_one(api: Conversation, pod: Any) -> None:
    await api.patch(f"{PODS}/a/resize?fieldManager=vertical", resized("2"), **STRATEGIC)
    managed = (await api.get(f"{PODS}/a")).body["metadata"]["managedFields"]
    (entry,) = [one for one in managed if one.get("subresource") == "resize"]
    assert entry["manager"] == "vertical"
    assert entry["fieldsV1"] == {
        "f:spec": {"f:containers": {'k:{"name":"c"}': {"f:resources": {"f:requests": {"f:cpu": {}}}}}}
    }


async def test_resources_are_not_changed_by_an_update(api: Conversation, pod: Any) -> None:
    answer = await api.patch(f"{PODS}/a", resized("2"), **STRATEGIC)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert "pod updates may not change fields other than" in answer.message
    assert '- spec.containers[0].resources.requests.cpu: "1"' in answer.message


async def test_a_replacement_through_resize_changes_nothing_else(api: Conversation, pod: Any) -> None:
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
    pod["metadata"]["labels"] = {"a": "b"}
    answer = await api.put(f"{PODS}/a/resize", pod)
    assert answer.status == 200 and "labels" not in answer.body["metadata"]


async def test_a_resize_that_moves_the_class_is_refused(api: Conversation, pod: Any) -> None:
    change = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": None}}}]}}
    answer = await api.patch(f"{PODS}/a/resize", change, **STRATEGIC)
    assert (answer.status, answer.message) == (
        422,
        'Pod "a" is invalid: [spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of '
        "resizing, spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed]",
    )


async def test_the_status_does_not_count_as_a_generation(api: Conversation, pod: Any) -> None:
    status = {"status": {"phase": "Running", "observedGeneration": 1}}
    answer = await api.patch(f"{PODS}/a/status", status, **MERGE)
    assert answer.body["metadata"]["generation"] == pod["metadata"]["generation"]
    again = await api.patch(f"{PODS}/a/status", {"status": {"observedGeneration": None}}, **MERGE)
    assert again.body["status"]["observedGeneration"] == 1
