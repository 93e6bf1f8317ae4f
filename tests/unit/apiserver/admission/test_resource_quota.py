"""R-SYS-3: a namespace uses no more than its quota."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

HERE = "/api/v1/namespaces/default"


async def quota(
    api: Conversation, hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any
) -> None:
    """A quota that its controller has counted."""
    made = await api.post(
        f"{HERE}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}
    )
    assert made.status == 201, made.body
    status = {"hard": hard, "used": {**dict.fromkeys(hard, "0"), **(used or {})}}
    counted = await api.patch(f"{HERE}/resourcequotas/q/status", {"status": status})
    assert counted.status == 200, counted.body


async def used(api: Conversation) -> Any:
    return (await api.get(f"{HERE}/resourcequotas/q")).body["status"]["used"]


async def test_what_is_created_is_counted(api: Conversation, pod_body: Callable[..., dict[str, Any]]) -> None:
    await quota(api, {"pods": "2", "requests.cpu": "1", "cpu": "1", "configmaps": "1", "count/pods": "5"})
    await api.post(f"{HERE}/pods", pod_body(requests={"cpu": "300m"}))
    await api.post(f"{HERE}/configmaps", {"metadata": {"name": "c"}})
    assert await used(api) == {
        "pods": "1", "requests.cpu": "300m", "cpu": "300m", "configmaps": "1", "count/pods": "1"
    }  # fmt: skip


async def test_too_much_is_refused(api: Conversation, pod_body: Callable[..., dict[str, Any]]) -> None:
    await quota(api, {"pods": "1", "requests.cpu": "1"}, {"pods": "1", "requests.cpu": "500m"})
    refused = await api.post(f"{HERE}/pods", pod_body(requests={"cpu": "600m"}))
    assert refused.status == 403
    assert refused.message == (
        'pods "p" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=600m, '
        "used: pods=1,requests.cpu=500m, limited: pods=1,requests.cpu=1"
    )


async def test_all_at_once_never_pass_together(
    api: Conversation, pod_body: Callable[..., dict[str, Any]]
) -> None:
    await quota(api, {"pods": "3"})
    answers = await asyncio.gather(*(api.post(f"{HERE}/pods", pod_body(f"p{n}")) for n in range(8)))
    assert sorted(answer.status for answer in answers) == [201] * 3 + [403] * 5
    assert await used(api) == {"pods": "3"}


async def test_init_containers_count(api: Conversation, pod_body: Callable[..., dict[str, Any]]) -> None:
    """R-INIT-9"""
    await quota(api, {"requests.cpu": "1"})
    init = {"name": "init", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    refused = await api.post(f"{HERE}/pods", pod_body(spec={"initContainers": [init]}, requests={"cpu": "1"}))
    assert "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0" in refused.message


async def test_what_is_limited_must_be_said(
    api: Conversation, pod_body: Callable[..., dict[str, Any]]
) -> None:
    await quota(api, {"limits.cpu": "1", "requests.memory": "1Gi"})
    refused = await api.post(f"{HERE}/pods", pod_body())
    assert refused.message == (
        'pods "p" is forbidden: failed quota: q: must specify limits.cpu for: app; requests.memory for: app'
    )


@pytest.mark.parametrize(
    ("scope", "resources", "spec", "status"),
    [
        ({"scopes": ["BestEffort"]}, {}, {}, 403),
        ({"scopes": ["BestEffort"]}, {"requests": {"cpu": "1"}}, {}, 201),
        ({"scopes": ["Terminating"]}, {}, {"activeDeadlineSeconds": 5}, 403),
        ({"scopes": ["Terminating"]}, {}, {}, 201),
        ({"scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]}},
         {}, {"priorityClassName": "system-node-critical"}, 403),
    ],
)  # fmt: skip
async def test_scopes(
    api: Conversation,
    pod_body: Callable[..., dict[str, Any]],
    scope: Any,
    resources: Any,
    spec: Any,
    status: int,
) -> None:
    await quota(api, {"pods": "0"}, **scope)
    assert (await api.post(f"{HERE}/pods", pod_body(spec=spec, **resources))).status == status


async def test_a_dry_run_takes_nothing(api: Conversation, pod_body: Callable[..., dict[str, Any]]) -> None:
    await quota(api, {"pods": "1"})
    assert (await api.post(f"{HERE}/pods?dryRun=All", pod_body())).status == 201
    assert await used(api) == {"pods": "0"}


async def test_other_namespaces_are_free(api: Conversation, pod_body: Callable[..., dict[str, Any]]) -> None:
    await quota(api, {"pods": "0"})
    assert (await api.post("/api/v1/namespaces/other/pods", pod_body())).status == 201


async def test_what_is_not_valid_takes_nothing(
    api: Conversation, pod_body: Callable[..., dict[str, Any]]
) -> None:
    await quota(api, {"pods": "1"})
    assert (await api.post(f"{HERE}/pods", pod_body("No_Name"))).status == 422
    assert await used(api) == {"pods": "0"}
