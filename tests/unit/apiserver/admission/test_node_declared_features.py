"""R-SYS-6: a running pod is changed only in ways its node says it can follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

PODS = "/api/v1/namespaces/default/pods"
BOTH = ["InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"]


def asking(cpu: str) -> dict[str, Any]:
    requests = {"requests": {"cpu": cpu}}
    init = {"name": "i", "image": "i", "resources": requests}
    return {"containers": [{"name": "c", "image": "i"}], "initContainers": [init], "resources": requests}


@pytest.fixture
async def bound(api: Conversation) -> Conversation:
    made = await api.post(PODS, {"metadata": {"name": "p"}, "spec": {**asking("1"), "nodeName": "n"}})
    assert made.status == 201, made.body
    return api


async def resize(api: Conversation) -> Any:
    return await api.patch(f"{PODS}/p/resize", {"spec": asking("2")}, "strategic-merge-patch")


async def test_a_node_that_says_so_is_followed(bound: Conversation) -> None:
    status = {"declaredFeatures": BOTH, "allocatable": {"cpu": "2"}}
    node = {"metadata": {"name": "n"}, "status": status}
    assert (await bound.post("/api/v1/nodes", node)).status == 201
    assert (await resize(bound)).status == 200


async def test_others_cannot_be_asked_for_it(bound: Conversation) -> None:
    await bound.post("/api/v1/nodes", {"metadata": {"name": "n"}, "status": {"declaredFeatures": BOTH[:1]}})
    refused = await resize(bound)
    assert (refused.status, refused.message) == (
        403,
        f'pods "p" is forbidden: pod update requires features {BOTH[1]} which are not available on node "n"',
    )
    labelled = await bound.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})
    assert labelled.status == 200


async def test_nor_can_a_node_that_is_gone(bound: Conversation) -> None:
    assert (await resize(bound)).message == 'pods "p" is forbidden: node "n" not found'


async def test_a_pod_of_no_node_yet_may_ask_for_anything(api: Conversation) -> None:
    await api.post(PODS, {"metadata": {"name": "p"}, "spec": asking("1")})
    assert (await resize(api)).status == 200
