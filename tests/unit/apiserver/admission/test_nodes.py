"""R-SYS-8: new nodes wait to be found ready, and a pod grows no larger than its node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
WAITS = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("sent", "has"),
    [
        ([], [WAITS]),
        ([{"key": "a", "effect": "NoExecute"}], [{"key": "a", "effect": "NoExecute"}, WAITS]),
        ([{**WAITS, "effect": "NoExecute"}], [{**WAITS, "effect": "NoExecute"}, WAITS]),
        ([{**WAITS, "value": "x"}], [{**WAITS, "value": "x"}]),
    ],
)
async def test_no_pod_is_placed_on_a_node_before_it_is_found_ready(
    api: Conversation, sent: list[Any], has: list[Any]
) -> None:
    made = await api.post(NODES, {"metadata": {"name": "n"}, "spec": {"taints": sent}})
    assert made.body["spec"]["taints"] == has
    free = await api.patch(f"{NODES}/n", {"spec": {"taints": None}}, "merge-patch")
    assert "taints" not in free.body["spec"]


@pytest.mark.parametrize(
    ("labels", "cpu", "why"),
    [
        ({}, "2", ""),
        (
            {},
            "2000100u",
            "node didn't have enough allocatable resources: cpu, requested: 2001, allocatable: 2000",
        ),
        ({"kubernetes.io/os": "linux"}, "2", ""),
        (
            {"kubernetes.io/os": "windows"},
            "1500m",
            'pod resize is only supported on linux nodes, node "n" is "windows"',
        ),
        # Nothing is asked of the node.
        ({"kubernetes.io/os": "windows"}, "1", ""),
    ],
)
async def test_a_pod_grows_as_far_as_its_node_reaches(
    api: Conversation, labels: dict[str, str], cpu: str, why: str
) -> None:
    room = {"allocatable": {"cpu": "2", "memory": "1Gi"}}
    await api.post(NODES, {"metadata": {"name": "n", "labels": labels}, "status": room})
    pod = {"metadata": {"name": "p"}, "spec": {**asking("1"), "nodeName": "n"}}
    assert (await api.post(PODS, pod)).status == 201
    resized = await api.patch(f"{PODS}/p/resize", {"spec": asking(cpu)}, "strategic-merge-patch")
    assert resized.body.get("message", "") == (why and f'pods "p" is forbidden: {why}')


def asking(cpu: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}
