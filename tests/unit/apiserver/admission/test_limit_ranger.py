"""R-SYS-3: defaults and bounds of a namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

PODS = "/api/v1/namespaces/default/pods"


async def limit(api: Conversation, **item: Any) -> None:
    body = {"metadata": {"name": "limits"}, "spec": {"limits": [{"type": "Container", **item}]}}
    made = await api.post("/api/v1/namespaces/default/limitranges", body)
    assert made.status == 201, made.body


async def test_containers_get_what_they_do_not_say(
    api: Conversation, pod_body: Callable[..., dict[str, Any]]
) -> None:
    await limit(api, default={"cpu": "1"}, defaultRequest={"cpu": "100m", "memory": "1Mi"})
    init = {"initContainers": [{"name": "init", "image": "i"}]}
    made = (await api.post(PODS, pod_body(spec=init, requests={"memory": "2Mi"}))).body
    resources = made["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"cpu": "1"}, "requests": {"cpu": "100m", "memory": "2Mi"}}
    assert made["status"]["qosClass"] == "Burstable"
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu request for container app; cpu limit for container app; "
        "cpu, memory request for init container init; cpu limit for init container init"
    )


@pytest.mark.parametrize(
    ("item", "resources", "why"),
    [
        ({"max": {"cpu": "1"}, "min": {"cpu": "1m"}}, {"limits": {"cpu": "2"}},
         "maximum cpu usage per Container is 1, but limit is 2"),
        ({"min": {"memory": "4Mi"}}, {"requests": {"memory": "1Mi"}},
         "minimum memory usage per Container is 4Mi, but request is 1Mi"),
        ({"type": "Pod", "max": {"cpu": "1"}}, {}, "maximum cpu usage per Pod is 1.  No limit is specified"),
        ({"type": "Pod", "min": {"cpu": "1"}}, {},
         "minimum cpu usage per Pod is 1.  No request is specified"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}},
         "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"),
    ],
)  # fmt: skip
async def test_bounds(
    api: Conversation, pod_body: Callable[..., dict[str, Any]], item: Any, resources: Any, why: str
) -> None:
    await limit(api, **item)
    refused = await api.post(PODS, pod_body(**resources))
    assert (refused.status, refused.message) == (403, f'pods "p" is forbidden: {why}')


async def test_a_pod_is_bound_by_its_effective_resources(
    api: Conversation, pod_body: Callable[..., dict[str, Any]]
) -> None:
    """R-INIT-9"""
    await limit(api, type="Pod", max={"cpu": "1"})
    init = {"name": "init", "image": "i", "resources": {"limits": {"cpu": "2"}}}
    refused = await api.post(PODS, pod_body(spec={"initContainers": [init]}, limits={"cpu": "1"}))
    assert "maximum cpu usage per Pod is 1, but limit is 2" in refused.message
