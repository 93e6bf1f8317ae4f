"""Evictions keep to disruption budgets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

HERE = "/api/v1/namespaces/default"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


async def running(
    api: Conversation, pod_body: Callable[..., dict[str, Any]], *names: str, status: Any = READY
) -> None:
    for name in names:
        body = pod_body(name)
        body["metadata"]["labels"] = {"app": "a"}
        assert (await api.post(f"{HERE}/pods", body)).status == 201
        assert (await api.patch(f"{HERE}/pods/{name}/status", {"status": status})).status == 200


async def budget(
    api: Conversation, name: str = "b", allowed: int = 0, spec: Any = None, **status: Any
) -> None:
    """A budget that its controller has counted."""
    selector = {"matchLabels": {"app": "a"}}
    made = await api.post(
        BUDGETS,
        {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": selector, **(spec or {})}},
    )
    assert made.status == 201, made.body
    counted = {"observedGeneration": 1, "disruptionsAllowed": allowed, "desiredHealthy": 1, **status}
    assert (await api.patch(f"{BUDGETS}/{name}/status", {"status": counted})).status == 200


async def evict(api: Conversation, name: str) -> Any:
    return await api.post(f"{HERE}/pods/{name}/eviction", {"metadata": {"name": name}})


async def test_an_eviction_takes_one_disruption(
    api: Conversation, pod_body: Callable[..., dict[str, Any]]
) -> None:
    await running(api, pod_body, "a", "b")
    await budget(api, allowed=1, currentHealthy=2)
    answers = await asyncio.gather(evict(api, "a"), evict(api, "b"))
    assert sorted(answer.status for answer in answers) == [201, 429]
    status = (await api.get(f"{BUDGETS}/b")).body["status"]
    assert status["disruptionsAllowed"] == 0
    assert len(status["disruptedPods"]) == 1


async def test_without_one_it_is_refused(api: Conversation, pod_body: Callable[..., dict[str, Any]]) -> None:
    await running(api, pod_body, "a")
    await budget(api, currentHealthy=1)
    refused = await evict(api, "a")
    assert (refused.status, refused.body["reason"]) == (429, "TooManyRequests")
    assert refused.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert refused.body["details"]["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
        }
    ]
    assert (await api.get(f"{HERE}/pods/a")).status == 200


async def test_a_budget_not_counted_yet_asks_for_patience(
    api: Conversation, pod_body: Callable[..., dict[str, Any]]
) -> None:
    await running(api, pod_body, "a")
    await budget(api, allowed=1, observedGeneration=0)
    refused = await evict(api, "a")
    assert refused.body["details"]["retryAfterSeconds"] == 10


async def test_a_pod_of_two_budgets_cannot_be_judged(
    api: Conversation, pod_body: Callable[..., dict[str, Any]]
) -> None:
    await running(api, pod_body, "a")
    await budget(api, "b")
    await budget(api, "c")
    refused = await evict(api, "a")
    assert refused.status == 500
    assert refused.message.startswith("This pod has more than one PodDisruptionBudget")


@pytest.mark.parametrize(
    ("status", "spec", "counted", "code"),
    [
        ({"phase": "Pending"}, {}, {}, 201),
        ({"phase": "Succeeded"}, {}, {}, 201),
        ({"phase": "Running"}, {}, {"currentHealthy": 1}, 201),
        ({"phase": "Running"}, {}, {"currentHealthy": 0}, 429),
        ({"phase": "Running"}, {"unhealthyPodEvictionPolicy": "AlwaysAllow"}, {"currentHealthy": 0}, 201),
    ],
)
async def test_who_need_not_be_counted(
    api: Conversation,
    pod_body: Callable[..., dict[str, Any]],
    status: Any,
    spec: Any,
    counted: Any,
    code: int,
) -> None:
    await running(api, pod_body, "a", status=status)
    await budget(api, spec=spec, **counted)
    assert (await evict(api, "a")).status == code


async def test_an_evicted_pod_says_so(api: Conversation, pod_body: Callable[..., dict[str, Any]]) -> None:
    """As does every pod the system ends: by the condition that controllers look for."""
    await api.post(f"{HERE}/pods", pod_body("a", {"nodeName": "n"}))
    assert (await evict(api, "a")).status == 201
    pod = (await api.get(f"{HERE}/pods/a")).body
    assert pod["metadata"]["deletionTimestamp"]
    (condition,) = pod["status"]["conditions"]
    assert condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-02T03:04:05Z",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    api.clock.move(5)
    await evict(api, "a")
    (again,) = (await api.get(f"{HERE}/pods/a")).body["status"]["conditions"]
    assert again["lastTransitionTime"] == condition["lastTransitionTime"]


async def test_older_clients_evict_too(api: Conversation, pod_body: Callable[..., dict[str, Any]]) -> None:
    await api.post(f"{HERE}/pods", pod_body("a"))
    body = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "a"}}
    assert (await api.post(f"{HERE}/pods/a/eviction", body)).status == 201
    assert (await api.post(f"{HERE}/pods/a/eviction", {**body, "apiVersion": "policy/v0"})).status == 400
