"""Priority classes: by name, by default, and only one default."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PODS = "/api/v1/namespaces/default/pods"


async def test_a_pod_has_the_number_of_its_class(
    api: Conversation, pod_body: Callable[..., dict[str, Any]]
) -> None:
    await api.post(CLASSES, {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})
    spec = (await api.post(PODS, pod_body(spec={"priorityClassName": "high"}))).body["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")


async def test_a_pod_without_a_class_is_of_the_default_one(
    api: Conversation, pod_body: Callable[..., dict[str, Any]]
) -> None:
    await api.post(CLASSES, {"metadata": {"name": "usual"}, "value": 10, "globalDefault": True})
    spec = (await api.post(PODS, pod_body())).body["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 10)


async def test_there_is_one_default(api: Conversation) -> None:
    await api.post(CLASSES, {"metadata": {"name": "a"}, "value": 1, "globalDefault": True})
    refused = await api.post(CLASSES, {"metadata": {"name": "b"}, "value": 2, "globalDefault": True})
    assert refused.status == 403
    assert refused.message == (
        'priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass a is already marked as default. '
        "Only one default can exist"
    )
    again = await api.patch(f"{CLASSES}/a", {"description": "d"})
    assert again.status == 200


async def test_the_system_classes_stay(api: Conversation) -> None:
    node_critical = f"{CLASSES}/system-node-critical"
    await api.post(CLASSES, {"metadata": {"name": "system-node-critical"}, "value": 2000001000})
    refused = await api.delete(node_critical)
    assert refused.status == 403
    assert refused.message == (
        'priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: '
        "this is a system priority class and cannot be deleted"
    )
    await api.post(CLASSES, {"metadata": {"name": "mine"}, "value": 1})
    assert (await api.delete(f"{CLASSES}/mine")).status == 200
