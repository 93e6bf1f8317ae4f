"""Runtime classes: overhead and scheduling become the pod's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
PODS = "/api/v1/namespaces/default/pods"


async def test_overhead_and_scheduling_are_added(
    api: Conversation, pod_body: Callable[..., dict[str, Any]]
) -> None:
    toleration = {"key": "kata", "operator": "Exists"}
    made = await api.post(
        CLASSES,
        {
            "metadata": {"name": "kata"},
            "handler": "kata",
            "overhead": {"podFixed": {"cpu": "250m"}},
            "scheduling": {"nodeSelector": {"kata": "yes"}, "tolerations": [toleration]},
        },
    )
    assert made.status == 201, made.body
    spec = (await api.post(PODS, pod_body(spec={"runtimeClassName": "kata"}))).body["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"kata": "yes"}
    assert toleration in spec["tolerations"]
    refused = await api.post(
        PODS, pod_body("q", spec={"runtimeClassName": "kata", "nodeSelector": {"kata": "no"}})
    )
    assert refused.message == (
        'pods "q" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; '
        "pod.spec.nodeSelector[kata] = no"
    )


async def test_refused(api: Conversation, pod_body: Callable[..., dict[str, Any]]) -> None:
    refused = await api.post(PODS, pod_body(spec={"runtimeClassName": "none"}))
    assert refused.message == 'pods "p" is forbidden: pod rejected: RuntimeClass "none" not found'
    refused = await api.post(PODS, pod_body(spec={"overhead": {"cpu": "1"}}))
    assert refused.message.endswith("Pod Overhead set without corresponding RuntimeClass defined Overhead")
